// This program plays scenarios of the SSE task protocol. It starts a Tapedeck binary on
// SQLite:
//
//     node run.mjs --binary ../../bin/tapedeck [part of a scenario's name]
//
// It prints the counts, and fails if a scenario fails or takes longer than a
// minute.
import { main, withServer } from "../harness.mjs"
import { api } from "./client.mjs"
import { scenarios } from "./scenarios.mjs"

await main("source 003 (SSE tasks)", (binary, play) => withServer(binary, [], async (server) => {
  const base = () => `${server.url}/sse` // a client needs only this URL
  const world = { get base() { return base() }, get api() { return api(base()) }, restart: () => server.restart() }
  await play("", scenarios, (scenario) => scenario(world))
}))
