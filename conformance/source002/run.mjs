// This program plays scenarios of durable session streams. It starts a Tapedeck binary on
// SQLite:
//
//     node run.mjs --binary ../../bin/tapedeck [part of a scenario's name]
//
// It prints the counts, and fails if a scenario fails or takes longer than a
// minute.
import { main, withServer } from "../harness.mjs"
import { Client } from "./client.mjs"
import { scenarios } from "./scenarios.mjs"

await main("source 002 (durable session streams)", (binary, play) => withServer(binary, [], async (server) => {
  const client = new Client(server.url) // a client needs only the URL
  await play("", scenarios, (scenario) => scenario(client))
}))
