// This program plays scenarios of context event sourcing. It starts a Tapedeck binary on
// SQLite with a model of its own:
//
//     node run.mjs --binary ../../bin/tapedeck [part of a scenario's name]
//
// It prints the counts, and fails if a scenario fails or takes longer than a
// minute.
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { createInterface } from "node:readline"

import { command, repository } from "./client.mjs"
import { startModel } from "./model.mjs"
import { scenarios } from "./scenarios.mjs"

const LIMIT_MS = 60_000

const args = process.argv.slice(2)
if (args[0] !== "--binary" || args.length < 2 || args.length > 3) {
  console.error("usage: node run.mjs --binary PATH [NAME]")
  process.exit(2)
}
const binary = resolve(args[1])
const only = args[2] ?? ""
const work = mkdtempSync(join(tmpdir(), "source004-"))
const data = join(work, "data")
const config = join(work, "tapedeck.toml")
const model = await startModel()
writeFileSync(config, `[[agent]]
name = "model"
kind = "llm"
url = "${model.url}"
model = "stub"
system = "You are a test."
`)
let server
try {
  server = await start("127.0.0.1:0")
  const cli = (env) => (...words) => command(binary, words, { TAPEDECK_DATA: data, NO_COLOR: "1", ...env })
  const world = {
    model, restart, until,
    cli: Object.assign(cli(), { with: cli }),
    get repository() { return repository(server.url) },
    list: async () => (await (await fetch(`${server.url}/api/v1/sessions?limit=1000`)).json()).sessions,
  }
  let passed = 0, failed = 0
  for (const [name, play] of Object.entries(scenarios)) {
    if (!name.includes(only)) continue
    try {
      await limited(play(world))
      passed++
    } catch (err) {
      failed++
      console.log(`  FAILED ${name}\n    ${String(err.stack ?? err).split("\n").slice(0, 24).join("\n    ")}`)
    }
  }
  console.log(`context event sourcing: ${passed} passed, ${failed} failed`)
  process.exitCode = passed > 0 && failed === 0 ? 0 : 1
} catch (err) {
  console.error(err.message)
  process.exitCode = 1
} finally {
  server?.child.kill("SIGTERM")
  await server?.ended
  await model.stop()
  rmSync(work, { recursive: true, force: true })
}
process.exit()

function limited(scenario) {
  let timer
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Error(`not done after ${LIMIT_MS / 1000} s`)), LIMIT_MS)
  })
  return Promise.race([scenario, late]).finally(() => clearTimeout(timer))
}

/** Waits until a condition is true that another process changes. */
async function until(condition) {
  while (!(await condition())) await new Promise((done) => setTimeout(done, 20))
}

/** Starts the server and waits until it prints its URL. */
async function start(listen) {
  const child = spawn(binary, ["serve", "--listen", listen, "--data", data, "--config", config], { stdio: ["ignore", "pipe", "pipe"] })
  const ended = new Promise((done) => child.on("exit", done))
  const address = new Promise((done) => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on("line", (line) => {
        const found = line.match(/http:\/\/[\d.]+:\d+/)
        if (found) done(found[0])
      })
    }
  })
  const url = await Promise.race([address, ended.then(() => { throw new Error(`${binary} ended before it served`) })])
  return { child, ended, url }
}

/** Kills the server with SIGKILL, and starts it again at the same address. */
async function restart() {
  server.child.kill("SIGKILL")
  await server.ended
  server = await start(new URL(server.url).host)
}
