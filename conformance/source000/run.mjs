// This program plays scenarios of the replay protocol of a workflow. It starts a Tapedeck
// binary on SQLite:
//
//     node run.mjs --binary ../../bin/tapedeck [part of a scenario's name]
//
// It prints the counts, and fails if a scenario fails or takes longer than a
// minute.
import { main, withServer } from "../harness.mjs"
import { scenarios } from "./scenarios.mjs"

await main("source 000 (replay for a workflow)", (binary, play) => withServer(binary, [], async (server) => {
  let sessions = 0
  const post = async (path, body) => {
    const response = await fetch(`${server.url}/api/v1${path}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) })
    if (!response.ok) throw new Error(`POST ${path}: ${response.status} ${await response.text()}`)
  }
  const sessionOf = (socket) => socket.match(/sessions\/(\w+)/)[1]
  const world = {
    /** Creates a session and returns the URL of its socket, all that a client needs. */
    async session() {
      const id = `flow${++sessions}`
      await post("/sessions", { id })
      return `${server.url.replace("http", "ws")}/api/v1/sessions/${id}/ws`
    },
    run: (socket, task) => post(`/sessions/${sessionOf(socket)}/task`, { agent: "hello", ...task }),
    resume: (socket, how) => post(`/sessions/${sessionOf(socket)}/resume`, how),
    restart: () => server.restart(),
  }
  await play("", scenarios, (scenario) => scenario(world))
}))
