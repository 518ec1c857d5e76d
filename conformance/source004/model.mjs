// This is a model that stores its requests. It speaks OpenAI's chat completions API,
// streamed.
import { createServer } from "node:http"

/** Starts the model. requests has the messages of each request. */
export async function startModel() {
  const requests = []
  const server = createServer((request, response) => {
    const parts = []
    request.on("data", (part) => parts.push(part))
    request.on("end", () => {
      const { messages } = JSON.parse(Buffer.concat(parts).toString())
      requests.push(messages)
      const asked = messages.findLast((m) => m.role === "user").content
      const called = messages.at(-1).role === "tool"
      response.writeHead(200, { "Content-Type": "text/event-stream" })
      const send = (delta, finish_reason = null) =>
        response.write(`data: ${JSON.stringify({ id: "r", object: "chat.completion.chunk", model: "stub", choices: [{ index: 0, delta, finish_reason }] })}\n\n`)
      const calls = called ? 0 : asked.includes("[tools]") ? 2 : asked.includes("[tool]") ? 1 : 0
      if (calls > 0) {
        send({ role: "assistant", content: calls > 1 ? null : "I write it down." })
        for (let n = 0; n < calls; n++) {
          const id = `call_${requests.length}_${n}`
          send({ tool_calls: [{ index: n, id, type: "function", function: { name: "todo_write", arguments: '{"todos":[{"content":"look",' } }] })
          send({ tool_calls: [{ index: n, function: { arguments: '"status":"in_progress"}]}' } }] })
        }
        send({}, "tool_calls")
      } else {
        send({ role: "assistant", content: `Answer ${requests.length}.` })
        if (asked.includes("[hang]")) return // the answer never ends
        send({}, "stop")
      }
      response.end("data: [DONE]\n\n")
    })
  })
  await new Promise((done) => server.listen(0, "127.0.0.1", done))
  return {
    requests,
    url: `http://127.0.0.1:${server.address().port}/v1`,
    stop: () => { server.closeAllConnections(); return new Promise((done) => server.close(done)) },
  }
}
