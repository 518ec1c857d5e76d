// These are the repository and the service of context event sourcing, written only from the
// document: a program that stores its agents' messages as events. The repository knows the
// URL of the server and ids of instances; the command line is called with the flags that the
// document has, and plain numbers. The numbers in comments are the document's lines.
import { execFile } from "node:child_process"

/** 88-94: the abstract repository, over HTTP. */
export class Repository {
  constructor(base) { this.base = base }

  async call(method, path, body) {
    const response = await fetch(`${this.base}/api/v1${path}`, {
      method,
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    const answer = await response.json()
    if (!response.ok) throw Object.assign(new Error(answer.error.message), { status: response.status })
    return answer
  }

  createSession(id) { return this.call("POST", "/sessions", { id }) } // 42: sessions exist before

  createInstance(session, agent, parent = null) { // 89
    return this.call("POST", `/sessions/${session}/instances`, { agent_name: agent, ...(parent && { parent_instance_id: parent }) })
  }

  async getInstance(id) { // 90: by its id alone
    try {
      return await this.call("GET", `/instances/${id}`)
    } catch (err) {
      if (err.status === 404) return null
      throw err
    }
  }

  /** The path of an instance, found by its id. */
  async path(id) {
    const i = await this.getInstance(id)
    if (!i) throw new Error(`there is no instance ${id}`)
    return `/sessions/${i.session_id}/instances/${i.id}`
  }

  async appendEvent(id, type, content, call = null) { // 91
    return this.call("POST", `${await this.path(id)}/events`, { event_type: type, content, ...(call && { tool_call_id: call }) })
  }

  async getEvents(id, from = 0) { return (await this.call("GET", `${await this.path(id)}/events?from=${from}`)).events } // 92

  async deleteEventsAfter(id, sequence) { return (await this.call("DELETE", `${await this.path(id)}/events?after=${sequence}`)).deleted } // 93

  async copyEvents(source, target, upTo = null) { // 94
    const to = await this.getInstance(target)
    return (await this.call("POST", `${await this.path(source)}/copy`, {
      target_session_id: to.session_id, target_instance_id: to.id, ...(upTo !== null && { up_to_sequence: upTo }),
    })).copied
  }

  /** 22: the instances of a session; the one that has no parent is the main one. */
  async instances(session) { return (await this.call("GET", `/sessions/${session}/instances`)).instances }

  async main(session) { return (await this.instances(session)).find((i) => !i.parent) }
}

const TYPES = { system: "system_message", user: "user_message", assistant: "assistant_message" }

/** 104-117: the service, on top of the repository. */
export class ContextService {
  constructor(repository, instance) { Object.assign(this, { repository, instance }) }

  appendMessage(role, content, toolCalls = null, call = null) { // 108
    if (role === "tool") return this.repository.appendEvent(this.instance, "tool_result", { tool_call_id: call, content }, call)
    return this.repository.appendEvent(this.instance, TYPES[role], { role, content, ...(toolCalls && { tool_calls: toolCalls }) })
  }

  async getMessages() { return messagesOf(await this.repository.getEvents(this.instance)) } // 109

  async replayFromSequence(n) { return messagesOf(await this.repository.getEvents(this.instance, n)) } // 112

  async getLastSequence() { return (await this.repository.getEvents(this.instance)).at(-1)?.sequence_number ?? -1 } // 113

  copyToNewInstance(target, upTo = null) { return this.repository.copyEvents(this.instance, target, upTo) } // 116

  truncateAfterSequence(n) { return this.repository.deleteEventsAfter(this.instance, n) } // 117
}

/** 19: the messages list is rebuilt from the events in sequence. */
export function messagesOf(events) {
  return events.filter((e) => e.event_type !== "tool_call").map(({ event_type, content }) =>
    event_type === "tool_result" ? { role: "tool", tool_call_id: content.tool_call_id, content: content.content } : content)
}

/** A message without empty members. Beside tool calls, a missing text is "". */
export function plain({ role, content, tool_calls, tool_call_id }) {
  return { role, content: content ?? "", ...(tool_calls?.length && { tool_calls }), ...(tool_call_id && { tool_call_id }) }
}

/** Runs a command of the program. */
export function command(binary, args, env) {
  return new Promise((done) => {
    execFile(binary, args, { env: { ...process.env, ...env }, timeout: 120_000 }, (err, stdout, stderr) =>
      done({ code: err ? (err.code ?? 1) : 0, stdout, stderr, session: stderr.match(/^session (\S+)/m)?.[1] }))
  })
}
