// This program plays scenarios of the AI SDK with its own chat and transport, in the
// versions 5, 6 and 7, without React. It starts a Tapedeck binary on SQLite:
//
//     node run.mjs --binary ../../bin/tapedeck [part of a scenario's name]
//
// It prints the counts, and fails if a scenario fails or takes longer than a minute.
import { main, withServer } from "../harness.mjs"
import { scenarios } from "./scenarios.mjs"

const suites = {
  "AI SDK 7": scenarios(await import("ai"), 7),
  "AI SDK 6": scenarios(await import("ai-v6"), 6),
  "AI SDK 5": scenarios(await import("ai-v5"), 5),
}

await main("AI SDK", (binary, play) => withServer(binary, ["--demo"], async (server) => {
  for (const [suite, list] of Object.entries(suites)) await play(suite, list, (scenario) => scenario(server))
}))
