// This program plays scenarios with the official MCP clients. It starts a Tapedeck binary on
// SQLite:
//
//     node run.mjs --binary ../../bin/tapedeck [part of a name of a client or scenario]
//
// It prints the counts, and fails if a scenario fails or takes longer than a
// minute.
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { createInterface } from "node:readline"

import { clients } from "./clients.mjs"
import { scenarios } from "./scenarios.mjs"

const LIMIT_MS = 60_000

const args = process.argv.slice(2)
if (args[0] !== "--binary" || args.length < 2 || args.length > 3) {
  console.error("usage: node run.mjs --binary PATH [NAME]")
  process.exit(2)
}
const [, given, only = ""] = args
const binary = resolve(given)
const work = mkdtempSync(join(tmpdir(), "mcp-"))
let server
try {
  server = await start()
  let passed = 0, failed = 0
  for (const [who, connect] of Object.entries(clients(binary, join(work, "data"), server.url, ["--write"]))) {
    for (const [name, play] of Object.entries(scenarios)) {
      if (!name.includes(only) && !who.includes(only)) continue
      let peer
      try {
        peer = await connect()
        await limited(play({ peer, api: server.url }))
        passed++
      } catch (err) {
        failed++
        console.log(`  FAILED ${who}: ${name}\n    ${String(err.stack ?? err).split("\n").slice(0, 12).join("\n    ")}`)
      } finally {
        await peer?.client.close()
      }
    }
  }
  console.log(`MCP clients: ${passed} passed, ${failed} failed`)
  process.exitCode = passed > 0 && failed === 0 ? 0 : 1
} catch (err) {
  console.error(err.message)
  process.exitCode = 1
} finally {
  server?.child.kill("SIGTERM")
  await server?.ended
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

/** Starts the server and waits until it prints its URL. */
async function start() {
  const child = spawn(binary, ["serve", "--json", "--listen", "127.0.0.1:0", "--mcp-write", "--data", join(work, "data")], { stdio: ["ignore", "pipe", "inherit"] })
  const ended = new Promise((done) => child.on("exit", done))
  const line = new Promise((done) => createInterface({ input: child.stdout }).once("line", done))
  const first = await Promise.race([line, ended.then(() => { throw new Error(`${binary} ended before it served`) })])
  return { child, ended, url: JSON.parse(first).url }
}
