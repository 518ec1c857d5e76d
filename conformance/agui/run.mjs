// This program plays scenarios of AG-UI with the official client, in the newest version
// and in the version that CopilotKit has, and with the core of CopilotKit. It starts a
// Tapedeck binary on SQLite:
//
//     node run.mjs --binary ../../bin/tapedeck [part of a scenario's name]
//
// It prints the counts, and fails if a scenario fails, takes longer than a minute, or
// makes a client warn.
import { main, withServer } from "../harness.mjs"

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

await main("AG-UI", (binary, play) => withServer(binary, ["--demo"], async (server) => {
  for (const [suite, list] of Object.entries(suites)) {
    await play(suite, list, async (scenario) => {
      warnings.length = 0
      await scenario(server, warnings)
      if (warnings.length > 0) throw new Error(`the client warns: ${warnings.join("\n")}`)
    })
  }
}))
