// These are the six schemas of the document (lines 128 to 155), with an event of each.

/** Of each channel: an event with all members, and those without which it says nothing. */
export const SCHEMAS = {
  chunks: { // 133 to 138
    event: (sessionId) => ({ id: "chunk1", agentId: "coder", sessionId, text: "I look at it. ", turn: 1, timestamp: Date.now() }),
    core: ["id", "agentId", "text"],
  },
  toolCalls: { // 133 to 140
    event: (sessionId) => ({ id: "call1", agentId: "coder", sessionId, tool: "Bash", input: { command: "ls", env: [] }, output: { lines: ["a", "b"] }, status: "complete", duration: 40 }),
    core: ["id", "agentId", "tool", "status"],
  },
  presence: { // 133 to 137
    event: (sessionId) => ({ userId: "ada", sessionId, cursor: { line: 3, column: 0 }, lastSeen: Date.now(), joinedAt: Date.now() - 1000 }),
    core: ["userId"],
  },
  terminal: { // 133 to 138
    event: (sessionId) => ({ id: "out1", sessionId, type: "output", data: "ok\r\n\u001b[31mred\u001b[0m", source: "agent", timestamp: Date.now() }),
    core: ["id", "type", "data"],
  },
  workflow: { // 146 to 152
    event: (sessionId) => ({ id: "step1", sessionId, taskId: "task1", type: "moved", payload: { from: "doing", to: ["review"] }, actor: "ada", timestamp: Date.now() }),
    core: ["id", "taskId", "type"],
  },
  agentState: { // 146 to 153
    event: (sessionId) => ({ agentId: "coder", sessionId, status: "running", taskId: "task1", turn: 1, progress: 0.5, message: "Reading", error: "a file was missing" }),
    core: ["agentId", "status"],
  },
}

const TEXTS = ["id", "agentId", "sessionId", "userId", "taskId", "tool", "status", "type", "source", "actor", "text", "message"]
const NUMBERS = ["turn", "timestamp", "duration", "lastSeen", "joinedAt"]

/** The event of a channel with one member of a wrong type each: [member, event]. */
export function wronglyTyped(channel, sessionId) {
  const event = SCHEMAS[channel].event(sessionId)
  const isText = (name) => TEXTS.includes(name)
  return Object.keys(event).flatMap((name) => {
    if (isText(name)) return [[name, { ...event, [name]: 7 }], [name, { ...event, [name]: ["x"] }]]
    return NUMBERS.includes(name) ? [[name, { ...event, [name]: "soon" }], [name, { ...event, [name]: {} }]] : []
  })
}

/** 273 to 277: the stream of the document. The figure shortens agentState to agent. */
export const example = (sessionId) => [
  { type: "started", channel: "agentState", data: { agentId: "coder", sessionId, status: "running", turn: 1 } },
  { type: "chunk", channel: "chunks", data: chunk(sessionId, 1, "I look. ") },
  { type: "tool", channel: "toolCalls", data: SCHEMAS.toolCalls.event(sessionId) },
  { type: "chunk", channel: "chunks", data: { ...chunk(sessionId, 1, "Done."), id: "chunk2" } },
  { type: "complete", channel: "agentState", data: { agentId: "coder", sessionId, status: "complete", turn: 1 } },
]

export const chunk = (sessionId, turn, text, agentId = "coder") => ({ ...SCHEMAS.chunks.event(sessionId), agentId, turn, text })
export const asChunk = (...of) => ({ channel: "chunks", ...chunk(...of) })
