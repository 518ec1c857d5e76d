// This program plays scenarios of AG-UI with the official client, in the newest version
// and in the version that CopilotKit has, and with the core of CopilotKit. It starts a
// Tapedeck binary on SQLite:
//
//     node run.mjs --binary ../../bin/tapedeck [part of a scenario's name]
//
// It prints the counts, and fails if a scenario fails, takes longer than a minute, or
// makes a client warn.
import { Server } from "./server.mjs"

const LIMIT_MS = 60_000

const args = process.argv.slice(2)
if (args[0] !== "--binary" || args.length < 2 || args.length > 3) {
  console.error("usage: node run.mjs --binary PATH [NAME]")
  process.exit(2)
}
const [, binary, only = ""] = args

process.env.COPILOTKIT_TELEMETRY_DISABLED = "true"
process.env.SUPPRESS_TRANSFORMATION_WARNINGS = "1"

// A warning of a client is a defect of the server.
const warnings = []
console.warn = (...parts) => warnings.push(parts.join(" "))
console.error = (...parts) => warnings.push(parts.join(" "))

const { scenarios } = await import("./scenarios.mjs")
const suites = {
  "AG-UI client 1.0.0": scenarios(await import("@ag-ui/client"), true),
  "AG-UI client 0.0.59": scenarios(await import("ag-ui-client-legacy"), false),
  "CopilotKit core 1.75.0": (await import("./copilotkit.mjs")).scenarios,
}

const server = new Server(binary)
try {
  await server.start()
  let passed = 0, failed = 0
  for (const [suite, list] of Object.entries(suites)) {
    const before = passed
    for (const [name, play] of Object.entries(list)) {
      if (!`${suite}: ${name}`.includes(only)) continue
      warnings.length = 0
      try {
        await limited(play(server, warnings))
        if (warnings.length > 0) throw new Error(`the client warns: ${warnings.join("\n")}`)
        passed++
      } catch (err) {
        failed++
        console.log(`  FAILED ${suite}: ${name}\n    ${String(err.stack ?? err).split("\n").slice(0, 30).join("\n    ")}`)
      }
    }
    console.log(`${suite}: ${passed - before} passed`)
  }
  console.log(`AG-UI: ${passed} passed, ${failed} failed`)
  process.exitCode = passed > 0 && failed === 0 ? 0 : 1
} catch (err) {
  console.log(err.message)
  process.exitCode = 1
} finally {
  await server.stop()
}
process.exit()

function limited(scenario) {
  let timer
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Error(`not done after ${LIMIT_MS / 1000} s`)), LIMIT_MS)
  })
  return Promise.race([scenario, late]).finally(() => clearTimeout(timer))
}
