// This program plays scenarios of the AI SDK with its own chat and transport, in the
// versions 5, 6 and 7, without React. It starts a Tapedeck binary on SQLite:
//
//     node run.mjs --binary ../../bin/tapedeck [part of a scenario's name]
//
// It prints the counts, and fails if a scenario fails or takes longer than a minute.
import { Server } from "./server.mjs"
import { scenarios } from "./scenarios.mjs"

const LIMIT_MS = 60_000

const args = process.argv.slice(2)
if (args[0] !== "--binary" || args.length < 2 || args.length > 3) {
  console.error("usage: node run.mjs --binary PATH [NAME]")
  process.exit(2)
}
const [, binary, only = ""] = args

const suites = {
  "AI SDK 7": scenarios(await import("ai"), 7),
  "AI SDK 6": scenarios(await import("ai-v6"), 6),
  "AI SDK 5": scenarios(await import("ai-v5"), 5),
}

const server = new Server(binary)
try {
  await server.start()
  let passed = 0, failed = 0
  for (const [suite, list] of Object.entries(suites)) {
    const before = passed
    for (const [name, play] of Object.entries(list)) {
      if (!`${suite}: ${name}`.includes(only)) continue
      try {
        await limited(play(server))
        passed++
      } catch (err) {
        failed++
        console.log(`  FAILED ${suite}: ${name}\n    ${String(err.stack ?? err).split("\n").slice(0, 40).join("\n    ")}`)
      }
    }
    console.log(`${suite}: ${passed - before} passed`)
  }
  console.log(`AI SDK: ${passed} passed, ${failed} failed`)
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
