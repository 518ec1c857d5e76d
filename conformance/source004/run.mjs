// This program plays scenarios of context event sourcing. It starts a Tapedeck binary on
// SQLite with a model of its own:
//
//     node run.mjs --binary ../../bin/tapedeck [part of a scenario's name]
//
// It prints the counts, and fails if a scenario fails or takes longer than a
// minute.
import { writeFileSync } from "node:fs"
import { join, resolve } from "node:path"

import { main, Server } from "../harness.mjs"
import { command, Repository } from "./client.mjs"
import { startModel } from "./model.mjs"
import { scenarios } from "./scenarios.mjs"

await main("source 004 (context event sourcing)", async (binary, play) => {
  const model = await startModel()
  const server = new Server(binary)
  const config = join(server.work, "tapedeck.toml")
  writeFileSync(config, `[[agent]]
name = "model"
kind = "llm"
url = "${model.url}"
model = "stub"
system = "You are a test."
`)
  server.flags.push("--config", config)
  const cli = (env) => (...words) => command(resolve(binary), words, { TAPEDECK_DATA: server.data, NO_COLOR: "1", ...env })
  const world = {
    model, until,
    restart: () => server.restart(),
    cli: Object.assign(cli(), { with: cli }),
    get repository() { return new Repository(server.url) },
    list: async () => (await (await fetch(`${server.url}/api/v1/sessions?limit=1000`)).json()).sessions,
  }
  try {
    await server.start()
    await play("", scenarios, (scenario) => scenario(world))
  } finally {
    await server.stop()
    await model.stop()
  }
})

/** Waits until a condition is true that another process changes. */
async function until(condition) {
  while (!(await condition())) await new Promise((done) => setTimeout(done, 20))
}
