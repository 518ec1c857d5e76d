// These tests use the unmodified official client, as an application does, with the server
// in DURABLE_URL. They do not delete their streams; each run uses new ones.
import { DurableStream, IdempotentProducer, stream } from "@durable-streams/client"
import { MaterializedState } from "@durable-streams/state"
import { afterAll, describe, expect, test, vi } from "vitest"

const base = process.env.DURABLE_URL
if (!base) throw new Error("DURABLE_URL is not set; run: node run.mjs URL")

const run = `client-${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`
const urlOf = (name) => `${base}/v1/stream/${run}/${name}`
const position = (n) => `${String(n).padStart(16, "0")}_${"0".repeat(16)}`
const abort = new AbortController()
afterAll(() => abort.abort())

/** Reads a stream up to its present end. */
const read = async (url, offset) => (await stream({ url, offset, live: false })).json()

/** Collects the items that a live reader gets. */
async function follow(url, live) {
  const response = await stream({ url, live, signal: abort.signal })
  const items = []
  response.subscribeJson((batch) => void items.push(...batch.items))
  return { items, response }
}

const inOrder = (items) => items.every((item, i) => item.value.i === i)
const until = (check) => vi.waitFor(check, { timeout: 60_000, interval: 20 })

describe("a stream of 500 messages by an idempotent producer", () => {
  const url = urlOf("log")
  let sse, longPoll, writer, producer

  test("reaches an SSE reader and a long-poll reader, complete and in order", async () => {
    writer = await DurableStream.create({ url, contentType: "application/json" })
    sse = await follow(url, "sse")
    longPoll = await follow(url, "long-poll")
    producer = new IdempotentProducer(writer, "producer-1", { autoClaim: true, lingerMs: 2 })
    for (let i = 0; i < 500; i++) {
      producer.append(JSON.stringify({
        type: "msg", key: `k${i % 7}`, value: { i }, headers: { operation: i < 7 ? "insert" : "update" },
      }))
    }
    await producer.flush()
    await until(() => {
      expect(sse.items.length).toBe(500)
      expect(longPoll.items.length).toBe(500)
    })
    expect(inOrder(sse.items)).toBe(true)
    expect(inOrder(longPoll.items)).toBe(true)
    expect(sse.response.offset.slice(0, 33)).toBe(position(500)) // the incarnation follows
  })

  test("folds into the state that was written", () => {
    const state = new MaterializedState()
    for (const item of sse.items) state.apply(item)
    expect(state.get("msg", "k3")).toEqual({ i: 493 })
  })

  test("can be read again from event 250", async () => {
    const items = await read(url, position(250))
    expect(items.length).toBe(250)
    expect(items[0].value.i).toBe(250)
  })

  test("can be forked at event 250, and the fork is independent", async () => {
    const fork = await DurableStream.create({
      url: `${url}-fork`,
      contentType: "application/json",
      headers: { "Stream-Forked-From": new URL(url).pathname, "Stream-Fork-Offset": position(250) },
    })
    expect((await read(fork.url)).length).toBe(250)
    await fork.append(JSON.stringify({ value: { i: "own" } }))
    const items = await read(fork.url)
    expect(items.length).toBe(251)
    expect(items[250].value.i).toBe("own")
    expect((await read(url)).length).toBe(500)
  })

  test("refuses a producer with an earlier epoch, and accepts one that claims the next", async () => {
    const late = new IdempotentProducer(writer, "producer-2", { epoch: 3, lingerMs: 1 })
    late.append(JSON.stringify({ value: { i: 500 } }))
    await late.flush()
    const errors = []
    const zombie = new IdempotentProducer(writer, "producer-2", { epoch: 1, lingerMs: 1, onError: (e) => errors.push(e) })
    zombie.append(JSON.stringify({ value: { i: -1 } }))
    await zombie.flush().catch((e) => errors.push(e))
    expect(errors.length).toBeGreaterThan(0)
    const claimer = new IdempotentProducer(writer, "producer-2", { autoClaim: true, lingerMs: 1 })
    claimer.append(JSON.stringify({ value: { i: 501 } }))
    await claimer.flush()
    const items = await read(url, position(500))
    expect(items.map((item) => item.value.i)).toEqual([500, 501])
  })

  test("ends for its readers when the producer closes it", async () => {
    await producer.close(JSON.stringify({ type: "msg", key: "end", value: { i: 502 }, headers: { operation: "insert" } }))
    await until(() => {
      expect(sse.response.streamClosed).toBe(true)
      expect(longPoll.response.streamClosed).toBe(true)
    })
    expect(sse.items.length).toBe(503)
    expect(inOrder(sse.items)).toBe(true)
    expect(inOrder(longPoll.items)).toBe(true)
    expect((await writer.head()).streamClosed).toBe(true)
  })
})

test("bytes are unchanged, also over SSE", async () => {
  const url = urlOf("bytes")
  const sent = Uint8Array.from({ length: 1024 }, (_, i) => i & 255)
  const writer = await DurableStream.create({ url, contentType: "application/octet-stream" })
  await writer.append(sent)
  const catchUp = await stream({ url, live: false })
  expect(await catchUp.body()).toEqual(sent)
  const live = await stream({ url, live: "sse", signal: abort.signal })
  const got = []
  live.subscribeBytes((chunk) => void got.push(...chunk.data))
  await writer.append(sent)
  await until(() => expect(got.length).toBe(2048))
  expect(Uint8Array.from(got.slice(1024))).toEqual(sent)
})

test("text keeps its spaces over SSE", async () => {
  const url = urlOf("text")
  const sent = ["The", " quick", "\n  brown\n", " ", " fox\n "]
  const writer = await DurableStream.create({ url, contentType: "text/plain" })
  await writer.append(sent[0])
  const live = await stream({ url, live: "sse", signal: abort.signal })
  let got = ""
  live.subscribeText((chunk) => void (got += chunk.text))
  await until(() => expect(got).toBe("The"))
  for (const text of sent.slice(1)) await writer.append(text)
  await until(() => expect(got).toBe(sent.join("")))
})

describe("a session", () => {
  const id = `ses_${run.replaceAll("-", "_")}`
  const url = `${base}/v1/stream/sessions/${id}`
  const post = (events) => fetch(url, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(events),
  })
  const event = (type, data) => ({ type, invocation: "inv_1", data })
  const turn = [
    event("RUN_STARTED", { threadId: "main", runId: "inv_1" }),
    event("STATE_SNAPSHOT", { snapshot: { n: 1 } }),
    event("TEXT_MESSAGE_START", { messageId: "m1", role: "assistant" }),
    event("TEXT_MESSAGE_CONTENT", { messageId: "m1", delta: "Hel" }),
    event("TEXT_MESSAGE_CONTENT", { messageId: "m1", delta: "lo" }),
    event("STATE_DELTA", { delta: [{ op: "replace", path: "/n", value: 2 }] }),
    event("TEXT_MESSAGE_END", { messageId: "m1" }),
    event("RUN_FINISHED", { threadId: "main", runId: "inv_1" }),
  ]
  let live

  test("is created and written, and read as envelopes", async () => {
    expect((await fetch(url, { method: "PUT" })).status).toBe(201)
    live = await follow(`${url}/views/messages`, "sse")
    expect((await post(turn)).status).toBe(204)
    const items = await read(url)
    expect(items.map((item) => item.offset)).toEqual(items.map((_, i) => i))
    expect(items.map((item) => item.type)).toEqual(expect.arrayContaining(turn.map((e) => e.type)))
  })

  test("has its state as entities that the state library folds", async () => {
    const state = new MaterializedState()
    for (const item of await read(`${url}/views/state`)) state.apply(item)
    expect(state.get("state", "main")).toEqual({ thread: "main", state: { n: 2 } })
    expect(state.get("run", "inv_1").status).toBe("complete")
  })

  test("delivers a message live when it is finished", async () => {
    await until(() => expect(live.items.length).toBe(1))
    const state = new MaterializedState()
    state.apply(live.items[0])
    expect(state.get("message", "m1")).toEqual({ id: "m1", role: "assistant", content: "Hello" })
  })

  test("has views of AG-UI events and plain text", async () => {
    const agui = await read(`${url}/views/agui`)
    const [started, ...rest] = turn.map((e) => e.type)
    expect(agui.map((e) => e.type)).toEqual([started, "MESSAGES_SNAPSHOT", ...rest])
    expect(agui.at(4)).toEqual({ type: "TEXT_MESSAGE_CONTENT", messageId: "m1", delta: "Hel" })
    expect(await (await stream({ url: `${url}/views/text`, live: false })).text()).toBe("Hello\n")
  })
})
