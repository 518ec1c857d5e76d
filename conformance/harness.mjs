// What the programs of this folder share: they start a Tapedeck binary, play scenarios
// against it, and print the counts.
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { createInterface } from "node:readline"

const LIMIT_MS = 240_000

/** The real program, with a data folder of its own. */
export class Server {
  constructor(binary, flags = []) {
    this.binary = resolve(binary)
    this.flags = flags
    this.work = mkdtempSync(join(tmpdir(), "conformance-"))
    this.data = join(this.work, "data")
  }

  /** Starts the server and waits until it prints its URL. */
  async start(listen = "127.0.0.1:0") {
    const env = { ...process.env, TAPEDECK_WORK: join(this.work, "work") }
    const where = this.flags.includes("--ephemeral") ? [] : ["--data", this.data]
    const child = spawn(this.binary, ["serve", "--listen", listen, ...where, ...this.flags], { stdio: ["ignore", "pipe", "pipe"], env })
    this.child = child
    this.ended = new Promise((done) => child.on("exit", done))
    const address = new Promise((done) => {
      for (const stream of [child.stdout, child.stderr]) {
        createInterface({ input: stream }).on("line", (line) => {
          const found = line.match(/http:\/\/[\d.]+:\d+/)
          if (found) done(found[0])
        })
      }
    })
    this.url = await Promise.race([address, this.ended.then(() => { throw new Error(`${this.binary} ended before it served`) })])
  }

  /** Kills the server with SIGKILL, and starts it again at the same address. */
  async restart() {
    this.child.kill("SIGKILL")
    await this.ended
    await this.start(new URL(this.url).host)
  }

  async stop() {
    this.child?.kill("SIGTERM")
    await this.ended
    rmSync(this.work, { recursive: true, force: true })
  }
}

/** Calls use with a server that runs, and stops the server. prepare gets it before it runs. */
export async function withServer(binary, flags, use, prepare = () => {}) {
  const server = new Server(binary, flags)
  try {
    prepare(server)
    await server.start()
    await use(server)
  } finally {
    await server.stop()
  }
}

/**
 * Reads the arguments "--binary PATH [NAME]" and calls body with the path and with a
 * function that plays scenarios: play(suite, scenarios, run). It plays those whose name
 * contains NAME; run plays one. At the end it prints the counts and ends the process,
 * with an error if a scenario failed, took longer than a minute, or if there was none.
 */
export async function main(title, body) {
  const args = process.argv.slice(2)
  if (args[0] !== "--binary" || args.length < 2 || args.length > 3) {
    console.error("usage: node run.mjs --binary PATH [NAME]")
    process.exit(2)
  }
  const [, binary, only = ""] = args
  let passed = 0, failed = 0
  const play = async (suite, scenarios, run) => {
    const before = passed
    for (const [name, scenario] of Object.entries(scenarios)) {
      const whole = suite ? `${suite}: ${name}` : name
      if (!whole.includes(only)) continue
      try {
        await limited(run(scenario))
        passed++
      } catch (err) {
        failed++
        console.log(`  FAILED ${whole}\n    ${String(err.stack ?? err).split("\n").slice(0, 30).join("\n    ")}`)
      }
    }
    if (suite) console.log(`${suite}: ${passed - before} passed`)
  }
  try {
    await body(binary, play)
    console.log(`${title}: ${passed} passed, ${failed} failed`)
    process.exitCode = passed > 0 && failed === 0 ? 0 : 1
  } catch (err) {
    console.log(err.message)
    process.exitCode = 1
  }
  process.exit()
}

function limited(scenario) {
  let timer
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Error(`not done after ${LIMIT_MS / 1000} s`)), LIMIT_MS)
  })
  return Promise.race([scenario, late]).finally(() => clearTimeout(timer))
}
