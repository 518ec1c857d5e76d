// This program plays scenarios with the official MCP clients. It starts a Tapedeck binary on
// SQLite:
//
//     node run.mjs --binary ../../bin/tapedeck [part of a name of a client or scenario]
//
// It prints the counts, and fails if a scenario fails or takes longer than a
// minute.
import { resolve } from "node:path"

import { main, withServer } from "../harness.mjs"
import { clients } from "./clients.mjs"
import { scenarios } from "./scenarios.mjs"

await main("MCP clients", (binary, play) => withServer(binary, ["--mcp-write"], async (server) => {
  for (const [who, connect] of Object.entries(clients(resolve(binary), server.data, server.url, ["--write"]))) {
    await play(who, scenarios, async (scenario) => {
      const peer = await connect()
      try {
        await scenario({ peer, api: server.url })
      } finally {
        await peer.client.close()
      }
    })
  }
}))
