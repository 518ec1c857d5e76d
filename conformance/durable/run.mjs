// This program runs the protocol's own suite and the tests with the official client. It
// uses a running server, which must allow webhooks to 127.0.0.0/8:
//
//     node run.mjs http://127.0.0.1:4747 [suite|client]
//
// or a Tapedeck binary, which it starts in memory and then on SQLite:
//
//     node run.mjs --binary ../../bin/tapedeck [suite|client]
//
// It prints the counts. It fails if a test fails, if a required test did not run, or after
// ten minutes. It needs the time limit because the client of the suite retries for ever if
// the server is not reachable.
import { spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

import { withServer } from "../harness.mjs"

const SUITE_TESTS = 338 // tests of version 0.3.6, with its 6 tests of subscriptions
const LIMIT_MS = 10 * 60_000
const LONG_POLL_MS = 500 // long-poll time of the servers that this program starts

const FLAGS = [
  "--long-poll", `${LONG_POLL_MS}ms`,
  "--allow-origin", "*", // the suite sends a preflight request of another origin
  "--webhook-allow", "127.0.0.0/8", // the receivers of the suite
]

const here = dirname(fileURLToPath(import.meta.url))
const FILES = { suite: ["suite.test.mjs"], client: ["client.test.mjs"], all: ["suite.test.mjs", "client.test.mjs"] }

const args = process.argv.slice(2)
const binary = args[0] === "--binary" ? args.splice(0, 2)[1] : undefined
const url = binary ? undefined : args.shift()
const files = FILES[args.shift() ?? "all"]
if (!(url || binary) || !files || args.length > 0) {
  console.error("usage: node run.mjs URL|--binary PATH [suite|client]")
  process.exit(2)
}

const work = mkdtempSync(join(tmpdir(), "durable-"))
let ok = true
try {
  if (url) {
    ok = await check(url.replace(/\/$/, ""), process.env.DURABLE_LONG_POLL_MS)
  } else {
    for (const [name, where] of [["memory", ["--ephemeral"]], ["SQLite", []]]) {
      console.log(`${name}:`)
      await withServer(binary, [...FLAGS, ...where], async (server) => {
        ok = (await check(server.url, LONG_POLL_MS)) && ok
      })
    }
  }
} catch (err) {
  console.error(err.message)
  ok = false
} finally {
  rmSync(work, { recursive: true, force: true })
}
process.exit(ok ? 0 : 1)

/** Runs the tests against a server and prints the results. */
async function check(url, longPoll) {
  if (!(await fetch(`${url}/v1/stream/`).then(() => true, () => false))) {
    throw new Error(`no server answers at ${url}`)
  }
  const report = join(work, "report.json")
  rmSync(report, { force: true })
  const vitest = join(here, "node_modules", "vitest", "vitest.mjs")
  const child = spawn(process.execPath, [vitest, "run", "--reporter=json", `--outputFile=${report}`, ...files], {
    cwd: here,
    stdio: ["ignore", "ignore", "inherit"],
    env: { ...process.env, DURABLE_URL: url, ...(longPoll && { DURABLE_LONG_POLL_MS: String(longPoll) }) },
  })
  const timer = setTimeout(() => {
    console.error(`stopped after ${LIMIT_MS / 60_000} minutes`)
    child.kill("SIGKILL")
  }, LIMIT_MS)
  const code = await new Promise((done) => child.on("exit", (c) => done(c ?? 1)))
  clearTimeout(timer)
  return summarise(JSON.parse(readFileSync(report, "utf8"))) && code === 0
}

function summarise(results) {
  let ok = results.testResults.length === files.length
  for (const file of results.testResults) {
    const name = file.name.endsWith("suite.test.mjs") ? "suite" : "client"
    const count = (...states) => file.assertionResults.filter((t) => states.includes(t.status)).length
    console.log(`${name}: ${count("passed")} passed, ${count("failed")} failed, ${count("skipped", "pending")} skipped`)
    for (const t of file.assertionResults.filter((t) => t.status === "failed")) {
      console.log(`  FAILED ${t.fullName}\n    ${(t.failureMessages[0] ?? "").split("\n").slice(0, 4).join("\n    ")}`)
    }
    if (file.message) console.log(`  ${file.message}`)
    if (name === "suite" && count("passed") < SUITE_TESTS) {
      console.log(`  the suite has ${SUITE_TESTS} tests, and all of them must pass`)
      ok = false
    }
  }
  return ok
}
