// The protocol's own conformance suite, against the server that the environment
// names. Run it with `node run.mjs URL`.
import { runConformanceTests } from "@durable-streams/server-conformance-tests"

const baseUrl = process.env.DURABLE_URL
if (!baseUrl) throw new Error("DURABLE_URL is not set; run: node run.mjs URL")

runConformanceTests({
  baseUrl,
  // How long the server's long-poll lasts. The suite waits a second longer.
  longPollTimeoutMs: Number(process.env.DURABLE_LONG_POLL_MS ?? 20_000),
  subscriptions: process.env.DURABLE_SUBSCRIPTIONS === "1",
})
