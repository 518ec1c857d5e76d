// This program plays scenarios of A2A with the official clients for JavaScript, of
// versions 1.0 and 0.3. It starts a Tapedeck binary on SQLite, once for each policy of
// tasks, and kills it in the middle of runs:
//
//     node run.mjs --binary ../../bin/tapedeck [part of a scenario's name]
//
// It prints the counts, and fails if a scenario fails or takes longer than a minute.
import { main, withServer } from "../harness.mjs"
import { perSession, perTurn } from "./scenarios.mjs"

await main("A2A with its own clients", async (binary, play) => {
  for (const [policy, scenarios] of [["per-turn", perTurn], ["per-session", perSession]]) {
    await withServer(binary, ["--a2a-tasks", policy, "--webhook-allow", "127.0.0.1"], (server) => {
      const world = { get url() { return server.url }, agent: (name) => `${server.url}/a2a/${name}/`, restart: () => server.restart() }
      return play(policy, scenarios, (scenario) => scenario(world))
    })
  }
})
