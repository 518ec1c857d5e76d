// This file runs the protocol's own conformance suite with the server in DURABLE_URL. Start
// it with `node run.mjs URL`.
import { runConformanceTests } from "@durable-streams/server-conformance-tests"

const baseUrl = process.env.DURABLE_URL
if (!baseUrl) throw new Error("DURABLE_URL is not set; run: node run.mjs URL")

runConformanceTests({
  baseUrl,
  // The long-poll time of the server. The suite waits one second longer.
  longPollTimeoutMs: Number(process.env.DURABLE_LONG_POLL_MS ?? 20_000),
  subscriptions: true,
})
