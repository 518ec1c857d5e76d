// This program plays scenarios of the document on durable streams. It starts a Tapedeck
// binary on SQLite:
//
//     node run.mjs --binary ../../bin/tapedeck [part of a scenario's name]
//
// It prints the counts, and fails if a scenario fails or takes longer than its limit.
import { main, withServer } from "../harness.mjs"
import { Client } from "./client.mjs"
import { refusals } from "./refusals.mjs"
import { scenarios } from "./scenarios.mjs"
import { sessions } from "./sessions.mjs"

await main("source 002 (durable streams)", (binary, play) => withServer(binary, [], async (server) => {
  const world = { client: new Client(`${server.url}/channels`), restart: () => server.restart() }
  await play("", { ...scenarios, ...sessions, ...refusals }, (scenario) => scenario(world))
}))
