// This program plays scenarios of rewinds over A2A. It starts a Tapedeck binary on SQLite,
// once for each of the document's options:
//
//     node run.mjs --binary ../../bin/tapedeck [part of a scenario's name]
//
// It prints the counts, and fails if a scenario fails or takes longer than a minute.
import { main, withServer } from "../harness.mjs"
import { optionA, optionB } from "./scenarios.mjs"

await main("source 001 (rewind over A2A)", async (binary, play) => {
  for (const [suite, flags, scenarios] of [["option A", [], optionA], ["options B and B'", ["--a2a-tasks", "per-session"], optionB]]) {
    await withServer(binary, ["--demo", ...flags], (server) => { // with an agent that asks for permission
      const world = {
        get url() { return server.url },
        restart: () => server.restart(),
        /** The types of all events of a session: what an operator sees, not a client. */
        log: async (session) => (await (await fetch(`${server.url}/api/v1/sessions/${session}/events`)).json()).events.map((e) => e.type),
      }
      return play(suite, scenarios, (scenario) => scenario(world))
    })
  }
})
