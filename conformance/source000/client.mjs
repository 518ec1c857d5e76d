// These are the two sides of the replay protocol for agents in the elements of a workflow,
// written only from the protocol's description: the page, with a panel for each element, and
// the backend of the agents. The URL of the socket is all that they know of Tapedeck.
import { WebSocket } from "ws"

/** Opens a socket. Messages that are sent before it is open wait. */
function connect(url, onMessage) {
  const socket = new WebSocket(url, "tapedeck.replay.v1")
  const open = new Promise((done, fail) => { socket.on("open", done); socket.on("error", fail) })
  const closed = new Promise((done) => socket.on("close", done))
  socket.on("message", (data) => onMessage(JSON.parse(data)))
  return {
    open, closed,
    send: (message) => open.then(() => socket.send(JSON.stringify(message))),
    close: () => { socket.close(); return closed },
  }
}

/** A page: it shows what happens live, and fills a panel that is empty when it is opened. */
export class Page {
  panels = new Map() // the items by element, in the order in which they came
  heard = [] // all messages
  errors = []
  waiting = []

  constructor(url) {
    this.socket = connect(url, (message) => this.handle(message))
  }

  panel(elementId) {
    if (!this.panels.has(elementId)) this.panels.set(elementId, { messages: [], thinking: [], tools: [] })
    return this.panels.get(elementId)
  }

  handle(message) {
    this.heard.push(message)
    const panel = message.elementId && this.panel(message.elementId)
    const text = () => panel.messages.findLast((m) => m.id === message.messageId)
    switch (message.type) {
      case "task.thinking":
        panel.thinking.push(message.message)
        break
      case "task.tool.start":
        panel.tools.push({ name: message.toolName, args: message.toolArgs, status: "running" })
        break
      case "task.tool.end":
        Object.assign(panel.tools.find((t) => t.name === message.toolName && t.status === "running"), { status: "complete", result: message.result })
        break
      case "text.message.start":
        if (!text()) panel.messages.push({ id: message.messageId, typed: "", content: "" })
        text().status = "streaming"
        break
      case "text.message.content": // typed grows by deltas, content is what the server says
        text().typed += message.delta
        text().content = message.content
        break
      case "text.message.end":
        text().status = "complete"
        break
      case "messages.snapshot":
        panel.threadId = message.threadId
        panel.messages = message.messages.map(({ id, content, status }) => ({ id, typed: content, content, status }))
        panel.thinking = message.thinking.map((t) => t.message)
        panel.tools = message.tools.map(({ name, args, status, result }) => ({ name, args, status, ...(status !== "running" && { result }) }))
        break
      case "clear.history":
        if (message.elementId) this.panels.delete(message.elementId)
        else this.panels.clear()
        break
      case "error":
        this.errors.push(message)
        break
    }
    this.waiting = this.waiting.filter(({ holds, done }) => !holds(message) || done(message))
  }

  /** Returns the first message from now on for which a condition holds. */
  next(holds) { return new Promise((resolve) => this.waiting.push({ holds, done: (message) => void resolve(message) })) }

  /** Waits until a condition of the page holds. */
  async until(holds) { while (!holds()) await this.next(() => true) }

  /** Opens the panel of an element: the history is requested if the panel is empty. */
  async open(elementId) {
    const { messages, thinking, tools } = this.panel(elementId)
    if (messages.length + thinking.length + tools.length > 0) return this.panel(elementId)
    await this.replay(elementId)
    return this.panel(elementId)
  }

  /** Requests a history and returns the snapshot. */
  replay(elementId) {
    const snapshot = this.next((m) => m.type === "messages.snapshot" && m.elementId === elementId)
    this.socket.send({ type: "replay.request", elementId })
    return snapshot
  }

  /** The button "Clear Execution". */
  clear() { return this.socket.send({ type: "clear.history" }) }

  close() { return this.socket.close() }
}

/** The backend of an agent in an element. It sends what the agent does. */
export class Backend {
  errors = []
  texts = new Map() // the text so far, by message

  constructor(url, elementId) {
    this.elementId = elementId
    this.reconnect(url)
  }

  /** Connects, again after a lost connection; the backend still knows its texts. */
  reconnect(url) {
    this.socket = connect(url, (message) => { if (message.type === "error") this.errors.push(message) })
    return this.socket.open
  }

  send(type, members) {
    return this.socket.send({ type, elementId: this.elementId, timestamp: new Date().toISOString(), ...members })
  }

  thinking(message) { return this.send("task.thinking", { message }) }
  toolStart(toolName, toolArgs) { return this.send("task.tool.start", { toolName, toolArgs }) }
  toolEnd(toolName, result) { return this.send("task.tool.end", { toolName, result }) }

  start(messageId) {
    this.texts.set(messageId, "")
    return this.send("text.message.start", { messageId })
  }

  /** Sends the next piece of a text, with the text so far. */
  say(messageId, delta) {
    this.texts.set(messageId, this.texts.get(messageId) + delta)
    return this.send("text.message.content", { messageId, delta, content: this.texts.get(messageId) })
  }

  end(messageId) { return this.send("text.message.end", { messageId }) }
  close() { return this.socket.close() }
}
