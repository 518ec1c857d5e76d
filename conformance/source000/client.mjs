// These are the two sides of the replay protocol for agents in the elements of a workflow,
// written only from the protocol's description: the page, with a panel for each element, and
// the backend of the agents. They know the URL of a socket and nothing else: they name no
// subprotocol, and they send and read only what the description has. "line 118" is a line of
// the description.
import { WebSocket } from "ws"

/** Opens a socket. Messages that are sent before it is open wait. */
function connect(url, onMessage) {
  const socket = new WebSocket(url)
  const open = new Promise((done, fail) => { socket.on("open", done); socket.on("error", fail) })
  const closed = new Promise((done) => socket.on("close", done))
  socket.on("message", (data) => onMessage(JSON.parse(data)))
  return {
    open, closed,
    send: (message) => open.then(() => socket.send(JSON.stringify(message))),
    close: () => { socket.close(); return closed },
  }
}

/**
 * A page: it shows what happens live, and fills a panel that is empty when it is opened. A
 * panel is the list of what it shows, in the order in which it came.
 */
export class Page {
  panels = new Map()
  heard = [] // all messages
  waiting = []

  constructor(url) {
    this.socket = connect(url, (message) => this.handle(message))
  }

  panel(elementId) {
    if (!this.panels.has(elementId)) this.panels.set(elementId, [])
    return this.panels.get(elementId)
  }

  handle(message) {
    this.heard.push(message)
    const panel = message.elementId && this.panel(message.elementId)
    const text = () => panel.findLast((item) => item.id === message.messageId)
    switch (message.type) {
      case "text.message.start": // line 67
        panel.push({ kind: "text", id: message.messageId, text: "", status: "streaming" })
        break
      case "text.message.content": // line 68: what is typed grows by deltas
        text().text += message.delta
        text().content = message.content
        break
      case "text.message.end": // line 69
        text().status = "complete"
        break
      case "task.thinking": // line 70
        panel.push({ kind: "thought", text: message.message })
        break
      case "task.tool.start": // line 71
        panel.push({ kind: "tool", name: message.toolName, status: "running" })
        break
      case "task.tool.end": // line 72
        panel.find((item) => item.name === message.toolName && item.status === "running").status = "complete"
        break
      case "messages.snapshot": // lines 207 to 223
        this.panels.set(message.elementId, [
          ...message.thinking.map((t) => ({ kind: "thought", text: t.message })),
          ...message.tools.map(({ name, status }) => ({ kind: "tool", name, status })),
          ...message.messages.map(({ id, content, status }) => ({ kind: "text", id, text: content, content, status })),
        ])
        break
    }
    this.waiting = this.waiting.filter(({ holds, done }) => !holds(message) || done(message))
  }

  /** Returns the first message from now on for which a condition holds. */
  next(holds) { return new Promise((resolve) => this.waiting.push({ holds, done: (message) => void resolve(message) })) }

  /** Waits until a condition of the page holds. */
  async until(holds) { while (!holds()) await this.next(() => true) }

  /** Waits until an element has ended n texts. */
  ends(elementId, n = 1) { return this.until(() => this.panel(elementId).filter((item) => item.kind === "text" && item.status !== "streaming").length >= n) }

  /** The bubble of an element: an empty panel requests its history, as in lines 187 to 197. */
  async click(elementId) {
    if (this.panel(elementId).length === 0) await this.replay(elementId)
    return this.panel(elementId)
  }

  /** Requests a history and returns the snapshot. */
  replay(elementId) {
    const snapshot = this.next((m) => m.type === "messages.snapshot" && m.elementId === elementId)
    this.socket.send({ type: "replay.request", elementId })
    return snapshot
  }

  /** The button "Clear Execution", as in line 376: the page forgets, and tells the server. */
  clear() {
    this.panels.clear()
    return this.socket.send({ type: "clear.history" })
  }

  close() { return this.socket.close() }
}

/** The backend of an agent in an element. It sends what the table of lines 65 to 72 lists. */
export class Backend {
  heard = []
  texts = new Map() // the text so far, by message

  constructor(url, elementId) {
    this.elementId = elementId
    this.reconnect(url)
  }

  /** Connects, again after a lost connection; the backend still knows its texts. */
  reconnect(url) {
    this.socket = connect(url, (message) => this.heard.push(message))
    return this.socket.open
  }

  get errors() { return this.heard.filter((message) => message.type === "error") }

  thinking(message) { return this.socket.send({ type: "task.thinking", message, elementId: this.elementId }) }
  toolStart(toolName, toolArgs) { return this.socket.send({ type: "task.tool.start", toolName, toolArgs }) }
  toolEnd(toolName, result) { return this.socket.send({ type: "task.tool.end", toolName, result }) }

  start(messageId) {
    this.texts.set(messageId, "")
    return this.socket.send({ type: "text.message.start", messageId, elementId: this.elementId })
  }

  /** Sends the next piece of a text, with the text so far. */
  say(messageId, delta) {
    this.texts.set(messageId, this.texts.get(messageId) + delta)
    return this.socket.send({ type: "text.message.content", delta, content: this.texts.get(messageId), messageId })
  }

  end(messageId) { return this.socket.send({ type: "text.message.end", messageId }) }
  close() { return this.socket.close() }
}
