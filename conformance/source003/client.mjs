// This is the page of the document on SSE sessions, without its looks. It is written only
// from the document, and sends only what the document says: a task with its config, a cancel,
// and reads of the session, its history and its stream, for which it has nothing but the token.
import { EventSource } from "eventsource"

export const TERMINAL = ["agent_complete", "error", "cancelled"]
const MAX_ATTEMPTS = 5
const INITIAL_DELAY_MS = 1000

/** Follows a session until a terminal event. It returns a function that ends it. */
export function connectSSE(baseUrl, sessionId, token, onEvent, onError, onReconnecting) {
  let source, timer, attempt = 0, isClosed = false
  const open = () => {
    source = new EventSource(`${baseUrl}/api/v1/sessions/${sessionId}/events?token=${token}`)
    source.onmessage = (message) => {
      const event = JSON.parse(message.data)
      attempt = 0
      if (message.lastEventId !== String(event.sequence)) onError(new Error(`id ${message.lastEventId} of event ${event.sequence}`)) // line 213
      if (TERMINAL.includes(event.type)) close()
      onEvent(event)
    }
    source.onerror = () => {
      source.close()
      if (isClosed) return
      if (++attempt > MAX_ATTEMPTS) return onError(new Error("the connection was lost"))
      onReconnecting?.(attempt)
      timer = setTimeout(open, INITIAL_DELAY_MS * 2 ** (attempt - 1))
    }
  }
  const close = () => {
    isClosed = true
    clearTimeout(timer)
    source.close()
  }
  open()
  return close
}

/** A page with one session. It appends the events that are above its last sequence number. */
export class Page {
  events = []
  seenAgain = 0 // events that were not
  session = null
  status = "idle"
  resumable = undefined
  error = null
  reconnects = 0
  #waiting = []
  #cleanup = () => {}

  constructor(baseUrl, token = "secret") {
    this.baseUrl = baseUrl
    this.token = token
  }

  async call(method, path, body) {
    const response = await fetch(`${this.baseUrl}/api/v1${path}`, {
      method, ...(body && { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: text && JSON.parse(text) }
  }

  /** Gives a task: in a new session, or in the one that the page shows if it can go on. */
  async send(task, config) {
    this.#cleanup() // line 440
    const fresh = !this.session || this.status === "cancelled" && this.resumable === false // line 415
    const answer = await this.call("POST", fresh ? "/sessions/run" : `/sessions/${this.session}/task`, { task, config })
    if (answer.status !== 202) throw Object.assign(new Error(`${answer.status} ${JSON.stringify(answer.body)}`), answer)
    if (fresh) {
      this.session = answer.body.session_id
      this.events = []
    }
    this.#connect()
    return answer.body
  }

  cancel() { return this.call("POST", `/sessions/${this.session}/cancel`) }
  show() { return this.call("GET", `/sessions/${this.session}`).then((a) => a.body) }
  history() { return this.call("GET", `/sessions/${this.session}/events/history`).then((a) => a.body.events) }

  /** Shows another session, or the same again after a reload. */
  async select(id) {
    this.leave()
    this.session = id
    const { status, resumable } = await this.show()
    this.status = status
    this.resumable = resumable
    this.events = await this.history()
    if (status === "running") this.#connect() // lines 471 and 475
  }

  leave() { this.#cleanup() }

  /** Resolves with the first event from now on that pleases, or rejects when the stream fails. */
  when(pleases) {
    return new Promise((resolve, reject) => this.#waiting.push({ pleases, resolve, reject }))
  }

  /** Resolves when the task has ended. */
  done() { return this.when((e) => TERMINAL.includes(e.type)) }

  #connect() {
    this.status = "running"
    this.error = null
    this.#cleanup = connectSSE(this.baseUrl, this.session, this.token, (event) => this.#handle(event), (err) => {
      this.#waiting.splice(0).forEach((w) => w.reject(err))
    }, () => { this.reconnects++ })
  }

  #handle(event) {
    const isNew = event.sequence > (this.events.at(-1)?.sequence ?? -1) // lines 201 and 475
    if (isNew) this.events.push(event)
    else this.seenAgain++
    switch (event.type) {
      case "agent_start": this.status = "running"; break
      case "agent_complete": this.status = event.data.status.toLowerCase(); break
      case "error":
        this.status = "failed"
        this.error = event.data.message
        break
      case "cancelled":
        this.status = "cancelled"
        this.resumable = event.data.resumable
    }
    const [told, others] = [[], []]
    for (const w of this.#waiting) (w.pleases(event) ? told : others).push(w)
    this.#waiting = others
    told.forEach((w) => w.resolve(event))
  }
}

/**
 * Builds a conversation from live or stored events. The tools that ran before a message
 * belong to it, and so do the todos and the output.
 */
export function conversation(events) {
  const items = []
  let tools = [], partial = ""
  const answer = () => items.findLast((item) => item.type !== "output")
  const flush = (content, streaming = false) => {
    items.push({ type: "agent_message", content, toolCalls: tools, ...(streaming && { streaming }) })
    tools = []
  }
  for (const { type, data } of [...events].sort((a, b) => a.timestamp.localeCompare(b.timestamp))) { // line 348
    switch (type) {
      case "user_message":
        partial = "" // line 388
        items.push({ type: "user", content: data.text })
        break
      case "message":
        if (data.is_partial) { partial += data.text; break }
        partial = ""
        flush(data.full_text)
        break
      case "tool_start":
        tools.push({ id: data.tool_id, name: data.tool_name, input: data.tool_input })
        break
      case "tool_complete": {
        const tool = [...tools, ...items.flatMap((item) => item.toolCalls ?? [])].find((t) => t.id === data.tool_id)
        if (!tool) throw new Error(`tool ${data.tool_id} is complete and has not started`)
        Object.assign(tool, { result: data.result, isError: data.is_error })
        break
      }
      case "output_display":
        items.push({ type: "output", output: data.output, files: data.result_files, status: data.status })
        break
      case "agent_complete": case "error": case "cancelled":
        if (partial) flush(partial, true)
        if (tools.length) flush("")
        partial = ""
        if (answer()) answer().status = { agent_complete: data.status, error: "FAILED", cancelled: "CANCELLED" }[type]
    }
  }
  if (partial) flush(partial, true)
  return items
}

/** Returns the todo list: that of the newest TodoWrite in the last user turn. */
export function todos(events) {
  const turn = events.findLastIndex((e) => e.type === "user_message")
  const calls = events.slice(turn + 1).filter((e) => e.type === "tool_start" && e.data.tool_name === "TodoWrite")
  return calls.at(-1)?.data.tool_input.todos
}
