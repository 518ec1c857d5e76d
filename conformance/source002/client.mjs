// This is a client of durable session streams, written only from the design of such a
// platform: six channels with their schemas, offsets, REST and SSE endpoints, summaries,
// history and export. The base URL is all that it knows of Tapedeck.

export class Client {
  constructor(baseUrl) {
    this.base = `${baseUrl}/api/sessions`
  }

  async call(method, path, body) {
    const response = await fetch(this.base + path, {
      method,
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    const text = await response.text()
    if (!response.ok) throw Object.assign(new Error(`${method} ${path}: ${response.status} ${text}`), { status: response.status })
    return response.headers.get("content-type")?.startsWith("application/json") ? JSON.parse(text) : text
  }

  create(input) { return this.call("POST", "", input) }
  get(id) { return this.call("GET", `/${id}`) }
  close(id) { return this.call("POST", `/${id}/close`) }
  list(query = "") { return this.call("GET", query && `?${query}`) }
  summary(id) { return this.call("GET", `/${id}/summary`) }
  export(id, format) { return this.call("POST", `/${id}/export`, { format }) }
  remove(id) { return this.call("DELETE", `/${id}`) }
  join(id, userId) { return this.call("POST", `/${id}/presence`, { action: "join", userId }) }
  leave(id, userId) { return this.call("POST", `/${id}/presence`, { action: "leave", userId }) }

  /** Publishes an event with the members of the channel's schema. */
  publish(id, channel, event) { return this.call("POST", `/${id}/events`, { channel, sessionId: id, ...event }) }

  /** Reads all persisted events from an offset on, page by page. */
  async events(id, fromOffset = 0, query = "") {
    const all = []
    for (let next = fromOffset; ; ) {
      const page = await this.call("GET", `/${id}/events?fromOffset=${next}&limit=5${query && `&${query}`}`)
      all.push(...page.events)
      if (page.next >= page.head) return all
      next = page.next
    }
  }

  /** Yields events from an offset on while they arrive, until the signal or the end. */
  async *subscribe(id, { fromOffset = 0, signal } = {}) {
    const response = await fetch(`${this.base}/${id}/stream?fromOffset=${fromOffset}`, { headers: { Accept: "text/event-stream" }, signal })
    if (!response.ok) throw new Error(`stream: ${response.status}`)
    if (response.status === 204) return
    let text = ""
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      text += chunk
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const fields = text.slice(0, end).split("\n").map((line) => line.match(/^(\w+): ?(.*)$/)).filter(Boolean)
        text = text.slice(end + 2)
        const of = (name) => fields.filter(([, n]) => n === name).map(([, , v]) => v).join("\n")
        if (of("event") === "" && of("data") !== "") yield JSON.parse(of("data")) // named events are notes about the stream
      }
    }
  }
}

/** Returns the replay of a closed session at a speed: [ms to wait, event] for each event. */
export function replay(events, speed) {
  return events.map((e, i) => [i === 0 ? 0 : (Date.parse(e.timestamp) - Date.parse(events[i - 1].timestamp)) / speed, e])
}
