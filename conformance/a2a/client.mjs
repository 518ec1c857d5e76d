// One form for the clients of both versions, and for both transports of version 1.0. Each
// has the methods send, stream, get, list, cancel and resubscribe, and those for push
// notification configs. Tasks and events are { state, text, final }, and configs are
// { id, task, url, token, bearer }, whatever the version calls them.
import { randomUUID } from "node:crypto"

import { Role, StreamResponse, TaskState } from "@a2a-js/sdk"
import { ClientFactory, JsonRpcTransportFactory, RestTransportFactory } from "@a2a-js/sdk/client"
import { A2AClient } from "a2a-js-sdk-0.3/client"

/** The clients, by name. Each is made for the URL of an agent. */
export const clients = {
  "1.0 JSON-RPC": (url) => modern(url, JsonRpcTransportFactory),
  "1.0 REST": (url) => modern(url, RestTransportFactory),
  "0.3 JSON-RPC": (url) => old(url),
}

async function modern(url, Transport) {
  const seen = recorder()
  const c = await new ClientFactory({ transports: [new Transport({ fetchImpl: seen.fetch })] }).createFromUrl(url)
  const message = (text, o = {}) => ({
    tenant: "", metadata: undefined,
    configuration: o.immediately || o.push
      ? { acceptedOutputModes: [], returnImmediately: !!o.immediately, taskPushNotificationConfig: o.push && config("", o.push) } : undefined,
    message: {
      messageId: o.id ?? randomUUID(), role: Role.ROLE_USER, contextId: o.context ?? "", taskId: o.task ?? "", extensions: [], referenceTaskIds: [],
      parts: [{ content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "text/plain" }], metadata: o.metadata,
    },
  })
  const config = (task, p) => ({
    tenant: "", taskId: task, id: p.id ?? "", url: p.url, token: p.token ?? "",
    authentication: p.bearer && { scheme: "Bearer", credentials: p.bearer },
  })
  const plain = (c) => ({ id: c.id, task: c.taskId, url: c.url, token: c.token, bearer: c.authentication?.credentials })
  const event = (e) => {
    const { $case, value } = e.payload ?? { $case: "task", value: e }
    return flat($case, value, (s) => TaskState[s].replace("TASK_STATE_", "").toLowerCase().replaceAll("_", "-"), (p) => p.content?.value)
  }
  return {
    seen,
    send: async (text, o) => event(await c.sendMessage(message(text, o))),
    stream: (text, o) => mapped(c.sendMessageStream(message(text, o)), event, seen),
    get: async (id) => event(await c.getTask({ tenant: "", id })),
    list: async (context) => (await c.listTasks({ tenant: "", contextId: context, status: 0, pageToken: "", statusTimestampAfter: undefined })).tasks.map(event),
    cancel: async (id) => event(await c.cancelTask({ tenant: "", id })),
    resubscribe: (id, after) => { seen.after = after; return mapped(c.resubscribeTask({ tenant: "", id }), event, seen) },
    extendedCard: () => c.getAgentCard(),
    setPush: async (task, p) => plain(await c.createTaskPushNotificationConfig(config(task, p))),
    getPush: async (task, id) => plain(await c.getTaskPushNotificationConfig({ tenant: "", taskId: task, id })),
    listPush: async (task) => (await c.listTaskPushNotificationConfig({ tenant: "", taskId: task, pageSize: 0, pageToken: "" })).configs.map(plain),
    deletePush: (task, id) => c.deleteTaskPushNotificationConfig({ tenant: "", taskId: task, id }),
    notified: (body) => event(StreamResponse.fromJSON(body)),
  }
}

async function old(url) {
  const seen = recorder()
  const c = await A2AClient.fromCardUrl(new URL(".well-known/agent-card.json", url).href, { fetchImpl: seen.fetch })
  const message = (text, o = {}) => ({
    configuration: o.immediately || o.push ? { blocking: !o.immediately, pushNotificationConfig: o.push && config(o.push) } : undefined,
    message: {
      kind: "message", messageId: o.id ?? randomUUID(), role: "user", contextId: o.context, taskId: o.task,
      parts: [{ kind: "text", text }], metadata: o.metadata,
    },
  })
  const config = (p) => ({ id: p.id, url: p.url, token: p.token, authentication: p.bearer && { schemes: ["Bearer"], credentials: p.bearer } })
  const plain = ({ taskId, pushNotificationConfig: c }) => ({ id: c.id, task: taskId, url: c.url, token: c.token, bearer: c.authentication?.credentials })
  const event = (e) => flat(e.kind, e, (s) => s, (p) => p.text ?? p.data)
  const result = async (call, form = event) => {
    const answer = await call
    if (answer.error) throw Object.assign(new Error(answer.error.message), { code: answer.error.code })
    return form(answer.result)
  }
  return {
    seen,
    send: (text, o) => result(c.sendMessage(message(text, o))),
    stream: (text, o) => mapped(c.sendMessageStream(message(text, o)), event, seen),
    get: (id) => result(c.getTask({ id })),
    cancel: (id) => result(c.cancelTask({ id })),
    resubscribe: (id, after) => { seen.after = after; return mapped(c.resubscribeTask({ id }), event, seen) },
    setPush: (task, p) => result(c.setTaskPushNotificationConfig({ taskId: task, pushNotificationConfig: config(p) }), plain),
    getPush: (task, id) => result(c.getTaskPushNotificationConfig({ id: task, pushNotificationConfigId: id }), plain),
    listPush: (task) => result(c.listTaskPushNotificationConfig({ id: task }), (list) => list.map(plain)),
    deletePush: (task, id) => result(c.deleteTaskPushNotificationConfig({ id: task, pushNotificationConfigId: id }), () => {}),
    notified: (body) => event(body),
  }
}

/** A task or an event of any version in one form. */
function flat(kind, v, state, content) {
  const said = (m) => m && { id: m.messageId, text: m.parts.map(content).join(""), agent: m.role === "agent" || m.role === Role.ROLE_AGENT, invocation: m.metadata?.kagent_invocation_id, adk: m.metadata?.adk_invocation_id }
  return {
    kind: kind.replace("-u", "U"), id: v.id ?? v.taskId, context: v.contextId, state: v.status && state(v.status.state),
    said: said(v.status?.message), history: v.history?.map(said), final: v.final,
    artifacts: v.artifacts?.map((a) => ({ id: a.artifactId, text: a.parts.map(content).join("") })), delta: v.artifact?.parts.map(content).join(""), artifact: v.artifact?.artifactId, append: v.append,
    metadata: v.metadata,
  }
}

async function* mapped(stream, event, seen) {
  for await (const e of stream) yield { ...event(e), offset: seen.ids.shift() }
}

/**
 * A fetch that notes the ids of streamed events, which the clients do not show, and sends
 * Last-Event-ID once. Of the events of one change only the last one has an id.
 */
function recorder() {
  const r = {
    ids: [], after: undefined,
    fetch: async (url, init = {}) => {
      const headers = new Headers(init.headers)
      if (r.after !== undefined) headers.set("Last-Event-ID", String(r.after))
      r.after = undefined
      const answer = await fetch(url, { ...init, headers })
      if (!answer.headers.get("content-type")?.startsWith("text/event-stream")) return answer
      r.ids = []
      let rest = "", id
      const text = new TextDecoder()
      const spy = new TransformStream({
        transform(chunk, to) {
          const lines = (rest + text.decode(chunk, { stream: true })).split("\n")
          rest = lines.pop()
          for (const l of lines) {
            if (l.startsWith("id: ")) id = l.slice(4)
            if (l.startsWith("data: ")) { r.ids.push(id); id = undefined }
          }
          to.enqueue(chunk)
        },
      })
      return new Response(answer.body.pipeThrough(spy), { status: answer.status, headers: answer.headers })
    },
  }
  return r
}
