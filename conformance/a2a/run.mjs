// This program plays scenarios of A2A with the official clients for JavaScript, of
// versions 1.0 and 0.3. It starts a Tapedeck binary on SQLite, once for each policy of
// tasks, and kills it in the middle of runs:
//
//     node run.mjs --binary ../../bin/tapedeck [part of a scenario's name]
//
// It prints the counts, and fails if a scenario fails or takes longer than a minute.
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { createInterface } from "node:readline"

import { perSession, perTurn } from "./scenarios.mjs"

const LIMIT_MS = 60_000

const args = process.argv.slice(2)
if (args[0] !== "--binary" || args.length < 2 || args.length > 3) {
  console.error("usage: node run.mjs --binary PATH [NAME]")
  process.exit(2)
}
const [, binary, only = ""] = args
let passed = 0, failed = 0
try {
  await play("per-turn", perTurn)
  await play("per-session", perSession)
  console.log(`A2A with its own clients: ${passed} passed, ${failed} failed`)
  process.exitCode = passed > 0 && failed === 0 ? 0 : 1
} catch (err) {
  console.error(err.message)
  process.exitCode = 1
}
process.exit()

/** Plays scenarios on a server with a policy. */
async function play(policy, scenarios) {
  const chosen = Object.entries(scenarios).filter(([name]) => name.includes(only))
  if (chosen.length === 0) return
  const work = mkdtempSync(join(tmpdir(), "a2a-"))
  let server
  try {
    server = await start(work, policy, "127.0.0.1:0")
    const restart = async () => {
      server.child.kill("SIGKILL")
      await server.ended
      server = await start(work, policy, new URL(server.url).host)
    }
    const world = { get url() { return server.url }, agent: (name) => `${server.url}/a2a/${name}/`, restart }
    for (const [name, run] of chosen) {
      try {
        await limited(run(world))
        passed++
      } catch (err) {
        failed++
        console.log(`  FAILED ${policy}: ${name}\n    ${String(err.stack ?? err).split("\n").slice(0, 14).join("\n    ")}`)
      }
    }
  } finally {
    server?.child.kill("SIGTERM")
    await server?.ended
    rmSync(work, { recursive: true, force: true })
  }
}

function limited(scenario) {
  let timer
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Error(`not done after ${LIMIT_MS / 1000} s`)), LIMIT_MS)
  })
  return Promise.race([scenario, late]).finally(() => clearTimeout(timer))
}

/** Starts the server and waits until it prints its URL. */
async function start(work, policy, listen) {
  const child = spawn(resolve(binary), ["serve", "--listen", listen, "--data", join(work, "data"), "--a2a-tasks", policy, "--webhook-allow", "127.0.0.1"], { stdio: ["ignore", "pipe", "pipe"] })
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
