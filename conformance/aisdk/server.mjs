// The server that the scenarios talk to: the real program on SQLite.
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { createInterface } from "node:readline"

export class Server {
  constructor(binary, flags = []) {
    this.binary = resolve(binary)
    this.flags = flags
    this.work = mkdtempSync(join(tmpdir(), "aisdk-"))
  }

  /** Starts the server and waits until it prints its URL. */
  async start(listen = "127.0.0.1:0") {
    const env = { ...process.env, TAPEDECK_WORK: join(this.work, "work") }
    const args = ["serve", "--demo", "--listen", listen, "--data", join(this.work, "data"), ...this.flags]
    const child = spawn(this.binary, args, { stdio: ["ignore", "pipe", "pipe"], env })
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
