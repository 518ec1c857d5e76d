// This program plays scenarios of the replay protocol of a workflow. It starts a Tapedeck
// binary on SQLite:
//
//     node run.mjs --binary ../../bin/tapedeck [part of a scenario's name]
//
// It prints the counts, and fails if a scenario fails or takes longer than a
// minute.
import { main, withServer } from "../harness.mjs"
import { beyond } from "./beyond.mjs"
import { sections } from "./sections.mjs"

await main("source 000 (replay for a workflow)", (binary, play) => withServer(binary, [], async (server) => {
  let sessions = 0
  const post = async (path, body) => {
    const response = await fetch(`${server.url}/api/v1${path}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) })
    if (!response.ok) throw new Error(`POST ${path}: ${response.status} ${await response.text()}`)
    return response.json()
  }
  const get = async (path) => (await fetch(`${server.url}/api/v1${path}`)).json()
  const sessionOf = (socket) => socket.match(/sessions\/(\w+)/)[1]
  const world = {
    /** Creates a session and returns the URL of its socket, all that a client needs. */
    async session() {
      const id = `flow${++sessions}`
      await post("/sessions", { id })
      return `${server.url.replace("http", "ws")}/api/v1/sessions/${id}/ws/replay`
    },
    run: (socket, task) => post(`/sessions/${sessionOf(socket)}/task`, { agent: "hello", ...task }),
    resume: (socket, how) => post(`/sessions/${sessionOf(socket)}/resume`, how),
    cancel: (socket, invocation) => post(`/sessions/${sessionOf(socket)}/cancel`, { invocation }),
    restart: () => server.restart(),
    /** Starts a workflow of the server in the session of a socket. */
    workflow: (socket, how) => post("/workflows/run", { session: sessionOf(socket), ...how }),
    workflowOf: async (socket) => (await get(`/sessions/${sessionOf(socket)}/workflow`)).workflow,
    /** Waits until a user task asks its question, and returns it. */
    async waits(socket, elementId) {
      for (;;) {
        const { activations } = await world.workflowOf(socket)
        const wait = activations.flatMap((a) => a.waits ?? []).find((w) => w.element === elementId && w.permission)
        if (wait) return wait
        await new Promise((later) => setTimeout(later, 50))
      }
    },
    /** Answers the question of a user task, when there is one. */
    async decide(socket, elementId, input) {
      const { permission } = await world.waits(socket, elementId)
      return post(`/sessions/${sessionOf(socket)}/permissions/${permission}`, { option: "submit", input })
    },
  }
  for (const [section, checks] of Object.entries(sections)) await play(section, checks, (check) => check(world))
  await play("beyond the description", beyond, (scenario) => scenario(world))
}))
