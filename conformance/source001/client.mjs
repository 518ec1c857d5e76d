// These are the two sides of rewinds, written only from the document: the page, and the
// executor of an agent that saves tasks. They know the URL of the server, a namespace and the
// name of an agent, and send nothing that the document does not say. The numbers are its
// lines.
import { randomUUID } from "node:crypto"

export const KEY = "kagent_rewind_before_invocation_id"
export const invocationOf = (message) => message.metadata?.kagent_invocation_id // 11

/** A page with the conversation of one session. */
export class Page {
  messages = []
  status = "ready"
  events = [] // of the newest stream
  errors = []
  agent = "hello"

  /** With taskId it is a page of option B', which has one task for each session. */
  constructor(world, session, taskId) {
    Object.assign(this, { world, session, taskId })
  }

  /** Resolves when an event of the stream has made a condition true. */
  until(condition) {
    return new Promise((resolve) => { this.seen = () => condition() && resolve() })
  }

  /** A normal message of the user. */
  async say(text, more) {
    const message = { kind: "message", messageId: randomUUID(), role: "user", contextId: this.session, parts: [{ kind: "text", text }], ...more }
    if (this.taskId) message.taskId = this.taskId // 162: the client sends the same task id for all messages
    this.messages.push(message)
    await this.stream(message)
  }

  /** "Rewind to here" on a message. 37, 71-74 */
  async rewindTo(clicked) {
    const invocation = invocationOf(clicked)
    if (!this.session || !invocation) throw new Error("the message cannot be rewound to") // 73
    await this.sendRewindRequest(invocation)
    if (this.status === "failed") return
    const at = this.messages.findIndex((m) => invocationOf(m) === invocation) // 100-102
    if (at >= 0) this.messages = this.messages.slice(0, at)
  }

  /** 80-85: nothing but these members. */
  sendRewindRequest(invocation) {
    return this.stream({ role: "user", contextId: this.session, metadata: { [KEY]: invocation }, parts: [{ kind: "text", text: "" }] })
  }

  /** 39, 84: message/stream at the path of all messages, and the same reader. */
  async stream(message) {
    this.status = "submitted"
    this.events = []
    const answer = await fetch(`${this.world.url}/a2a/default/${this.agent}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: "text/event-stream" },
      body: JSON.stringify({ jsonrpc: "2.0", id: randomUUID(), method: "message/stream", params: { message } }),
    })
    let rest = ""
    for await (const chunk of answer.body.pipeThrough(new TextDecoderStream())) {
      rest += chunk
      for (let end; (end = rest.indexOf("\n\n")) >= 0; rest = rest.slice(end + 2)) {
        const data = rest.slice(0, end).split("\n").filter((l) => l.startsWith("data:")).map((l) => l.slice(5)).join("\n")
        if (data) this.handle(JSON.parse(data))
        if (data) this.seen?.()
      }
    }
  }

  handle({ result, error }) {
    if (error) {
      this.errors.push(error.message)
      this.status = "failed"
      return
    }
    this.events.push(result)
    switch (result.kind) {
      case "task": // 77, 160: a task with a history replaces the conversation, and ends the turn
        if (this.taskId && result.history?.length) {
          this.messages = [...result.history]
          this.status = "ready"
        }
        break
      case "status-update": // 55: the last one ends the turn
        if (result.status.message && result.status.state === "failed") this.errors.push(result.status.message.parts.map((p) => p.text).join("")) // 205
        else if (result.status.message?.role === "agent") this.messages.push(result.status.message)
        if (result.final) this.status = result.status.state
        break
    }
  }

  /** 107: reads the tasks again; a reload does nothing else. */
  async load() {
    const answer = await fetch(`${this.world.url}/api/sessions/${this.session}/tasks`)
    const { data } = await answer.json()
    this.tasks = data
    this.messages = data.flatMap((task) => task.history)
    return this
  }

  get words() { return words(this.messages) }
}

/** What is said in a conversation. */
export const words = (messages) => messages.map((m) => m.parts.filter((p) => p.kind === "text").map((p) => p.text).join("")).filter(Boolean)

/** The executor of an agent. It makes the messages itself, so they have ids of its own. */
export class Executor {
  constructor(world, session) {
    Object.assign(this, { world, session })
  }

  /** 143, 155-156: the messages before the invocation, converted. */
  effective(messages, before) {
    const at = messages.findIndex((m) => invocationOf(m) === before)
    return messages.slice(0, at).map((m) => ({ kind: "message", messageId: randomUUID(), role: m.role, parts: m.parts, metadata: { kagent_invocation_id: invocationOf(m) } }))
  }

  /** 143: option B. */
  put(history) { return this.send("PUT", `/api/sessions/${this.session}/effective_history`, history) }

  /** 157-158, 161: option B', the task of the session with its effective history. */
  save(history) {
    return this.send("POST", "/api/tasks", { kind: "task", id: this.session, contextId: this.session, history, status: { state: "completed" } })
  }

  async send(method, path, body) {
    const answer = await fetch(this.world.url + path, { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) })
    return { status: answer.status, body: await answer.json() }
  }
}
