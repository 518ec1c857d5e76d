// This is a client of context event sourcing: a repository of agent instances and their
// context events, for a program that stores its agents' messages in this form. It uses
// HTTP, and the command line for whole sessions.
import { execFile } from "node:child_process"

/** Returns the repository, with one method for each operation. */
export function repository(base) {
  const call = async (method, path, body) => {
    const response = await fetch(`${base}/api/v1/sessions${path}`, {
      method,
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    const answer = await response.json()
    if (!response.ok) throw Object.assign(new Error(answer.error.message), { status: response.status })
    return answer
  }
  const of = (i) => `/${i.session_id}/instances/${i.id}`
  return {
    createSession: (id) => call("POST", "", { id }),
    instances: async (session) => (await call("GET", `/${session}/instances`)).instances.map((i) => ({ ...i, session_id: session })),
    context: (session) => call("GET", `/${session}/context`),

    createInstance: (session, agent, parent) =>
      call("POST", `/${session}/instances`, { agent_name: agent, ...(parent && { parent_instance_id: parent }) }),
    getInstance: async (i) => {
      try {
        return await call("GET", of(i))
      } catch (err) {
        if (err.status === 404) return undefined
        throw err
      }
    },
    appendEvent: (i, type, content, tool_call_id) => call("POST", `${of(i)}/events`, { event_type: type, content, tool_call_id }),
    getEvents: async (i, from = 0) => (await call("GET", `${of(i)}/events?from=${from}`)).events,
    deleteEventsAfter: async (i, sequence) => (await call("DELETE", `${of(i)}/events?after=${sequence}`)).deleted,
    copyEvents: async (source, target, upTo) =>
      (await call("POST", `${of(source)}/copy`, {
        target_session_id: target.session_id, target_instance_id: target.id, ...(upTo !== undefined && { up_to_sequence: upTo }),
      })).copied,
  }
}

/** Rebuilds the messages of a model from the events of an instance. */
export function messagesOf(events) {
  const out = []
  for (const { event_type, content } of events) {
    if (event_type === "tool_result") out.push({ role: "tool", tool_call_id: content.tool_call_id, content: content.content })
    else if (event_type !== "tool_call") out.push(plain(content)) // calls are in their messages
  }
  return out
}

/** Returns a message without empty members. Beside tool calls, a missing text is "". */
export function plain({ role, content, tool_calls, tool_call_id }) {
  const m = { role, content: content ?? "" }
  if (tool_calls?.length) m.tool_calls = tool_calls
  if (tool_call_id) m.tool_call_id = tool_call_id
  return m
}

/** Runs a command of the program. */
export function command(binary, args, env) {
  return new Promise((done) => {
    execFile(binary, args, { env: { ...process.env, ...env }, timeout: 120_000 }, (err, stdout, stderr) =>
      done({ code: err ? (err.code ?? 1) : 0, stdout, stderr, session: stderr.match(/^session (\S+)/m)?.[1] }))
  })
}
