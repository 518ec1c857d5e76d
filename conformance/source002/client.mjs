// This is the client of the document on durable streams, without its looks: the hooks that
// fetch the events of a session and follow them, and the service that publishes. It is
// written only from the document. The URL before /api/sessions is all that it knows of
// Tapedeck. The numbers in comments are the document's lines.
import { EventSource } from "eventsource"

const RECONNECT_MS = 50
const PATIENCE_MS = 20_000

/** A list is the answer itself, or its member of that name, or data. */
const listOf = (answer, name) => (Array.isArray(answer) ? answer : (answer[name] ?? answer.data))
const query = (members) => {
  const text = new URLSearchParams(members).toString()
  return text && `?${text}`
}

export class Client {
  constructor(base) { this.sessions = `${base}/api/sessions` }

  /** Sends a text as it is. A refusal is an error with its status and sentence. */
  async send(method, path, text) {
    const response = await fetch(this.sessions + path, {
      method,
      ...(text !== undefined && { headers: { "Content-Type": "application/json" }, body: text }),
    })
    const answer = await response.text()
    if (response.ok) return { type: response.headers.get("content-type") ?? "", text: answer }
    throw Object.assign(new Error(`${method} ${path}: ${response.status} ${answer}`), { status: response.status, sentence: sentenceOf(answer) })
  }

  async call(method, path, body) {
    const { text } = await this.send(method, path, body && JSON.stringify(body))
    return text && JSON.parse(text)
  }

  create(input) { return this.call("POST", "", input) } // 58 and 71
  get(id) { return this.call("GET", `/${id}`) } // 54
  async list(filters) { return listOf(await this.call("GET", query(filters)), "sessions") } // 53
  summary(id) { return this.call("GET", `/${id}/summary`) } // 56
  export(id, format) { return this.send("POST", `/${id}/export`, JSON.stringify({ format })) } // 57
  close(id) { return this.call("POST", `/${id}/close`) } // 72
  join(id, userId) { return this.call("POST", `/${id}/presence`, { action: "join", userId }) } // 73
  leave(id, userId) { return this.call("POST", `/${id}/presence`, { action: "leave", userId }) } // 74
  publish(id, event) { return this.call("POST", `/${id}/events`, event) } // 75
  remove(id) { return this.call("DELETE", `/${id}`) } // 98

  /** 97: a page of events. */
  async events(id, options) { return listOf(await this.call("GET", `/${id}/events${query(options)}`), "events") }

  /** 190 to 194: all events, page by page. */
  async history(id, { fromOffset = 0, limit = 100, ...filters } = {}) {
    const rows = []
    for (;;) {
      const page = await this.events(id, { fromOffset, limit, ...filters })
      if (page.length === 0) return rows
      if (page[0].offset < fromOffset) throw new Error(`a page from ${fromOffset} begins with ${page[0].offset}`)
      rows.push(...page)
      fromOffset = page.at(-1).offset + 1
    }
  }

  /** 76: the events from an offset on, also those to come. */
  subscribe(id, options) { return new Subscription(`${this.sessions}/${id}/stream`, options) }
}

function sentenceOf(text) {
  try {
    const answer = JSON.parse(text)
    return answer.error?.message ?? answer.message ?? answer.error
  } catch {
    return text
  }
}

/**
 * A subscriber. rows are the events that it has received, all of them. When it loses its
 * connection it names the offset after its last event (280), or with native it leaves that
 * to the EventSource.
 */
export class Subscription {
  rows = []
  onRow = () => {}
  #waiting = []
  #isClosed = false

  constructor(url, { fromOffset = 0, native = false } = {}) {
    this.opened = new Promise((resolve, reject) => {
      const open = (offset) => {
        this.source = new EventSource(`${url}?fromOffset=${offset}`)
        this.source.onopen = resolve
        this.source.onmessage = ({ data }) => this.#take(JSON.parse(data))
        this.source.onerror = ({ code, message }) => {
          const isRefused = code >= 400 && code < 500
          if (this.#isClosed || (native && !isRefused)) return
          this.source.close()
          if (isRefused) return reject(Object.assign(new Error(message), { status: code }))
          setTimeout(() => this.#isClosed || open((this.rows.at(-1)?.offset ?? offset - 1) + 1), RECONNECT_MS)
        }
      }
      open(fromOffset)
    })
    this.opened.catch(() => {}) // also if nobody waits for it
  }

  #take(row) {
    this.rows.push(row)
    this.onRow(row)
    const isTold = (w) => w.pleases(row)
    this.#waiting.filter(isTold).forEach((w) => w.resolve(this.rows))
    this.#waiting = this.#waiting.filter((w) => !isTold(w))
  }

  /** Resolves with all rows when one has come that pleases. */
  async until(pleases) {
    if (this.rows.some(pleases)) return this.rows
    let timer
    const late = new Promise((_, fail) => {
      timer = setTimeout(() => fail(new Error(`after ${PATIENCE_MS / 1000} s the stream had sent ${JSON.stringify(this.rows).slice(0, 2000)}`)), PATIENCE_MS)
    })
    const told = new Promise((resolve) => this.#waiting.push({ pleases, resolve }))
    await Promise.race([told, late, this.opened.then(() => told)]).finally(() => clearTimeout(timer))
    return this.rows
  }

  close() {
    this.#isClosed = true
    this.source.close()
  }
}

/** 263: the tool calls that the viewer expands. Of each member, the newest value is shown. */
export function toolCalls(rows) {
  const calls = new Map()
  for (const { channel, data } of rows) if (channel === "toolCalls") calls.set(data.id, { ...calls.get(data.id), ...data })
  return [...calls.values()]
}

/** 253 to 255: a replay at a speed: for each event, the milliseconds to wait before it. */
export function waits(rows, speed) {
  return rows.map((row, i) => (i === 0 ? 0 : (row.timestamp - rows[i - 1].timestamp) / speed))
}
