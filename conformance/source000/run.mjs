// This program plays scenarios of the replay protocol of a workflow. It starts a Tapedeck
// binary on SQLite:
//
//     node run.mjs --binary ../../bin/tapedeck [part of a scenario's name]
//
// It prints the counts, and fails if a scenario fails or takes longer than a
// minute.
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { createInterface } from "node:readline"

import { scenarios } from "./scenarios.mjs"

const LIMIT_MS = 60_000

const args = process.argv.slice(2)
if (args[0] !== "--binary" || args.length < 2 || args.length > 3) {
  console.error("usage: node run.mjs --binary PATH [NAME]")
  process.exit(2)
}
const [, binary, only = ""] = args
const work = mkdtempSync(join(tmpdir(), "source000-"))
let server
try {
  server = await start("127.0.0.1:0")
  let sessions = 0
  const world = {
    /** Creates a session and returns the URL of its socket, all that a client needs. */
    async session() {
      const id = `flow${++sessions}`
      await post("/sessions", { id })
      return `${server.url.replace("http", "ws")}/api/v1/sessions/${id}/ws`
    },
    run: (socket, task) => post(`/sessions/${sessionOf(socket)}/task`, { agent: "hello", ...task }),
    resume: (socket, how) => post(`/sessions/${sessionOf(socket)}/resume`, how),
    restart,
  }
  let passed = 0, failed = 0
  for (const [name, play] of Object.entries(scenarios)) {
    if (!name.includes(only)) continue
    try {
      await limited(play(world))
      passed++
    } catch (err) {
      failed++
      console.log(`  FAILED ${name}\n    ${String(err.stack ?? err).split("\n").slice(0, 12).join("\n    ")}`)
    }
  }
  console.log(`source 000 (replay for a workflow): ${passed} passed, ${failed} failed`)
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

function sessionOf(socket) {
  return socket.match(/sessions\/(\w+)/)[1]
}

async function post(path, body) {
  const response = await fetch(`${server.url}/api/v1${path}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) })
  if (!response.ok) throw new Error(`POST ${path}: ${response.status} ${await response.text()}`)
}

/** Starts the server and waits until it prints its URL. */
async function start(listen) {
  const child = spawn(resolve(binary), ["serve", "--listen", listen, "--data", join(work, "data")], { stdio: ["ignore", "pipe", "pipe"] })
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
