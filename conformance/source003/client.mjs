// This is a client of the SSE task protocol, written only from the protocol's description.
// It can start, follow, cancel and replay tasks, and builds a conversation from the events.
// The base URL is all that it knows of Tapedeck.
import { EventSource } from "eventsource"

export const TERMINAL = ["agent_complete", "error", "cancelled"]
const MAX_ATTEMPTS = 5
const INITIAL_DELAY_MS = 1000

/**
 * Follows a session until a terminal event. When the connection is lost, it reconnects
 * after 1, 2, 4... seconds, at most five times in a row, and continues after the last
 * event. It returns a function that ends it.
 */
export function connectSSE(baseUrl, sessionId, token, onEvent, onError, onReconnecting, { after, fetch } = {}) {
  let source, timer, attempt = 0, isClosed = false, last = after

  const open = () => {
    const url = new URL(`${baseUrl}/api/v1/sessions/${sessionId}/events?token=${token}`)
    if (last !== undefined) url.searchParams.set("lastEventId", last)
    source = new EventSource(url, fetch && { fetch })
    source.onmessage = (message) => {
      const event = JSON.parse(message.data)
      attempt = 0
      last = event.sequence
      if (message.lastEventId.split("@")[0] !== String(event.sequence)) // the incarnation of the session follows
        onError(new Error(`id ${message.lastEventId} of event ${event.sequence}`))
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

/** The HTTP calls. */
export function api(baseUrl) {
  const call = async (method, path, body) => {
    const response = await fetch(`${baseUrl}/api/v1${path}`, {
      method, ...(body && { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: text && JSON.parse(text) }
  }
  return {
    call,
    run: (task, config, agent = "hello") => call("POST", "/sessions/run", { task, agent, config }),
    task: (id, task, config) => call("POST", `/sessions/${id}/task`, { task, config }),
    cancel: (id) => call("POST", `/sessions/${id}/cancel`),
    session: async (id) => (await call("GET", `/sessions/${id}`)).body,
    history: async (id) => (await call("GET", `/sessions/${id}/events/history`)).body.events,
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
  const sorted = [...events].sort((a, b) => a.timestamp.localeCompare(b.timestamp) || a.sequence - b.sequence)
  for (const { type, data } of sorted) {
    switch (type) {
      case "user_message":
        partial = ""
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
