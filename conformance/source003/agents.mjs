// These are the agents of the scenarios: a program that speaks as Claude Code does, and a
// model. As a program of its own, this file is the first of them.
import { createServer } from "node:http"
import { fileURLToPath } from "node:url"

const TODOS = [
  { content: "Read file", activeForm: "Reading", status: "completed" }, { content: "Process data", activeForm: "Processing", status: "in_progress" },
  { content: "Write output", activeForm: "Writing", status: "pending" }, { content: "Print it", activeForm: "Printing", status: "cancelled" },
]

/** What the program prints: two calls of its model, with a tool between them. */
function claude() {
  const session = "0b7c1f5e-claude"
  const event = (event) => ({ type: "stream_event", event, session_id: session, parent_tool_use_id: null })
  const turn = (id, blocks, output) => [
    event({ type: "message_start", message: { id, model: "claude-x", role: "assistant", content: [], usage: { input_tokens: 10, output_tokens: 1 } } }),
    ...blocks.flatMap((block, index) => [
      event({ type: "content_block_start", index, content_block: block.tool ? { type: "tool_use", id: block.id, name: block.tool, input: {} } : { type: "text", text: "" } }),
      event({ type: "content_block_delta", index, delta: block.tool ? { type: "input_json_delta", partial_json: JSON.stringify(block.input) } : { type: "text_delta", text: block.text } }),
      event({ type: "content_block_stop", index }),
    ]),
    event({ type: "message_delta", delta: { stop_reason: "x" }, usage: { output_tokens: output } }),
    event({ type: "message_stop" }),
  ]
  const answer = (id, content) => ({ type: "user", message: { role: "user", content: [{ type: "tool_result", tool_use_id: id, content }] }, session_id: session, parent_tool_use_id: null })
  return [
    { type: "system", subtype: "init", session_id: session, cwd: "/", model: "claude-x", tools: ["Read", "TodoWrite"], skills: ["pdf"], permissionMode: "default" },
    ...turn("m1", [{ text: "I plan." }, { tool: "TodoWrite", id: "t1", input: { todos: TODOS } }, { tool: "Read", id: "t2", input: { file_path: "/a.txt" } }], 5),
    answer("t1", "ok"), answer("t2", "hello"),
    ...turn("m2", [{ text: "It says hello." }], 3),
    { type: "result", subtype: "success", is_error: false, session_id: session, total_cost_usd: 0.25, usage: { input_tokens: 20, output_tokens: 8 } },
  ]
}

/** A model over OpenAI's chat completions API. It writes a todo list, and then it answers. */
export async function startModel() {
  const server = createServer((request, response) => {
    const parts = []
    request.on("data", (part) => parts.push(part))
    request.on("end", () => {
      const { messages } = JSON.parse(Buffer.concat(parts).toString())
      response.writeHead(200, { "Content-Type": "text/event-stream" })
      const send = (delta, finish_reason = null, more = {}) =>
        response.write(`data: ${JSON.stringify({ id: "r", object: "chat.completion.chunk", model: "stub", choices: [{ index: 0, delta, finish_reason }], ...more })}\n\n`)
      const called = messages.at(-1).role === "tool"
      send({ role: "assistant", content: called ? "Done." : "I plan." })
      if (!called) send({ tool_calls: [{ index: 0, id: "c", type: "function", function: { name: "todo_write", arguments: JSON.stringify({ todos: TODOS }) } }] })
      send({}, called ? "stop" : "tool_calls", { usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 } })
      response.end("data: [DONE]\n\n")
    })
  })
  await new Promise((done) => server.listen(0, "127.0.0.1", done))
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    stop: () => { server.closeAllConnections(); return new Promise((done) => server.close(done)) },
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) for (const line of claude()) console.log(JSON.stringify(line))
