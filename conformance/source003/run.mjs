// This program plays scenarios of the document on SSE sessions. It starts a Tapedeck binary
// on SQLite, with a server for each kind of agent:
//
//     node run.mjs --binary ../../bin/tapedeck [part of a scenario's name]
//
// It prints the counts, and fails if a scenario fails or takes longer than its limit.
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

import { main, withServer } from "../harness.mjs"
import { startModel } from "./agents.mjs"
import { scripted, withClaude, withModel } from "./scenarios.mjs"

const claude = fileURLToPath(new URL("agents.mjs", import.meta.url))

await main("source 003 (SSE tasks)", async (binary, play) => {
  const model = await startModel()
  const agents = [
    [scripted, `name = "script"\nkind = "script"\nscript = "hello"`],
    [withClaude, `name = "claude"\nkind = "process"\ndialect = "claude"\ncommand = "${process.execPath}"\nargs = ["${claude}", "{task}"]`],
    [withModel, `name = "model"\nkind = "llm"\nurl = "${model.url}"\nmodel = "stub"`],
  ]
  try {
    for (const [scenarios, agent] of agents) {
      await withServer(binary, [], async (server) => {
        await play("", scenarios, (scenario) => scenario({ get base() { return `${server.url}/sse` }, restart: () => server.restart() }))
      }, (server) => {
        const config = join(server.work, "tapedeck.toml")
        writeFileSync(config, `[[agent]]\n${agent}\n`)
        server.flags.push("--config", config)
      })
    }
  } finally {
    await model.stop()
  }
})
