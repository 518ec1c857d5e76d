// One check for each sentence of the document on streams and events. The numbers are its
// lines. sessions.mjs has the checks on sessions, refusals.mjs those on what is wrong.
import assert from "node:assert/strict"

import { toolCalls, waits } from "./client.mjs"
import { asChunk, example, SCHEMAS } from "./schemas.mjs"

export const CHANNELS = Object.keys(SCHEMAS)
export const newSession = async ({ client }, title = "Mend the parser") => (await client.create({ title, projectId: "project1", taskId: "task1" })).id
export const texts = (rows) => rows.map((row) => row.data.text)
const offsets = (rows) => rows.map((row) => row.offset)
const data = (rows) => rows.map((row) => row.data)
const upTo = (n) => Array.from({ length: n }, (_, i) => i)
const last = (n) => (row) => row.offset >= n - 1

/** An event of each channel, in each form in which an event is published. */
const forms = {
  "beside its channel": (channel, event) => ({ channel, ...event }),
  "in data": (channel, event) => ({ type: "noted", channel, data: event }),
}

/** Publishes one after another. */
export async function publishAll({ client }, id, events) {
  for (const event of events) await client.publish(id, event)
  return id
}
/** A session with the events of the figure. */
export async function exampleSession(world, title) {
  const id = await newSession(world, title)
  return publishAll(world, id, example(id))
}
const chunks = (id, n, from = 0) => upTo(n).map((i) => asChunk(id, 1, `text ${from + i}`))

/** Follows a session from an offset until it has all of n events. */
async function followed({ client }, id, fromOffset, n) {
  const subscription = client.subscribe(id, { fromOffset })
  try {
    return await subscription.until(last(n))
  } finally {
    subscription.close()
  }
}

/** Publishes while a subscriber listens. Returns what all readers have received. */
async function everywhere(world, id, publish, n) {
  const live = world.client.subscribe(id)
  try {
    await live.opened
    await publish()
    return { live: await live.until(last(n)), replayed: await followed(world, id, 0, n), stored: await world.client.history(id) }
  } finally {
    live.close()
  }
}

const channelChecks = Object.fromEntries(Object.entries(forms).flatMap(([form, formed]) => CHANNELS.map((channel) => [
  `123, 128-155: an event of ${channel} that is published ${form} is stored and streamed unchanged`,
  async (world) => {
    const id = await newSession(world)
    const event = SCHEMAS[channel].event(id)
    const read = await everywhere(world, id, () => world.client.publish(id, formed(channel, event)), 1)
    for (const [where, rows] of Object.entries(read)) assert.deepEqual(rows.map((r) => [r.channel, r.data]), [[channel, event]], where)
  },
])))

export const scenarios = {
  ...channelChecks,

  async "75: several events are published at once, in their order"(world) {
    const id = await newSession(world)
    const events = example(id)
    await world.client.publish(id, events)
    assert.deepEqual((await world.client.history(id)).map(({ type, channel, data }) => ({ type, channel, data })), events)
  },
  async "94-101: an event has the columns of the table"(world) {
    const [one, two] = [await exampleSession(world), await exampleSession(world)]
    const rows = [...await world.client.history(one), ...await world.client.history(two)]
    for (const [i, row] of rows.entries()) {
      assert.ok(typeof row.id === "string" && row.id !== "", `id ${row.id}`) // 95
      assert.equal(row.session_id, i < 5 ? one : two) // 96
      assert.ok(Number.isSafeInteger(row.offset)) // 97
      assert.equal(row.type, example(one)[i % 5].type) // 98
      assert.equal(row.channel, example(one)[i % 5].channel) // 99
      assert.equal(typeof row.data, "object") // 100
      assert.equal(typeof row.timestamp, "number") // 101
    }
    assert.equal(new Set(rows.map((r) => r.id)).size, 10) // 95: a primary key
  },
  async "102: an event has the time when it was stored"(world) {
    for (const row of await world.client.history(await exampleSession(world)))
      assert.ok(Math.abs(Date.now() - new Date(row.created_at)) < 60_000, `created_at ${row.created_at}`)
  },
  async "98: an event without a type of its own gets one"(world) {
    const id = await newSession(world)
    for (const channel of CHANNELS) await world.client.publish(id, { channel, ...SCHEMAS[channel].event(id) })
    for (const { channel, type } of await world.client.history(id)) assert.ok(typeof type === "string" && type !== "", `${channel}: ${type}`)
  },
  async "235: the payload of an event is any JSON"(world) {
    const id = await newSession(world)
    const input = JSON.parse('{"a":null,"b":[[],{},[{"c":[1e300,-0.1,0,true,false,""]}]],"__proto__":{"d":1},"":"","data":"x","channel":"chunks","type":7}')
    const odd = ["\r\n\ndata: {}\n\nid: 9\nevent: end\n\n", "\u2028\u2029\u0000\u001b[2J", "👩‍👩‍👧 e\u0301 \ufeff", "</script>", "%0a&#10;", " ", "x".repeat(100_000)]
    const published = [
      ...odd.map((text) => asChunk(id, 1, text)),
      { channel: "toolCalls", ...SCHEMAS.toolCalls.event(id), input, output: input },
      { channel: "workflow", ...SCHEMAS.workflow.event(id), payload: input },
    ].map((e) => JSON.parse(JSON.stringify(e)))
    const read = await everywhere(world, id, () => publishAll(world, id, published), published.length)
    for (const rows of Object.values(read)) assert.deepEqual(rows.map((r) => ({ channel: r.channel, ...r.data })), published)
  },
  async "95, 215: an event is published as its type and its data, and the type says the channel"(world) {
    const id = await newSession(world)
    const types = { chunks: "chunk", toolCalls: "tool", agentState: "started", presence: "presence", terminal: "terminal", workflow: "workflow" }
    const events = CHANNELS.map((channel) => ({ type: types[channel], data: SCHEMAS[channel].event(id) }))
    const read = await everywhere(world, id, () => publishAll(world, id, events), events.length)
    for (const rows of Object.values(read)) {
      assert.deepEqual(rows.map((r) => r.channel), CHANNELS)
      assert.deepEqual(rows.map((r) => r.data), events.map((e) => e.data))
    }
  },
  async "275: the channel agent is that of an agent's state"(world) {
    const id = await newSession(world)
    const state = SCHEMAS.agentState.event(id)
    await world.client.publish(id, { channel: "agent", ...state })
    const [row] = await world.client.history(id)
    assert.deepEqual([row.channel, row.data], ["agentState", state])
  },
  async "136: a text may be empty"(world) {
    const id = await newSession(world)
    await publishAll(world, id, ["", "a", "", "b"].map((text) => asChunk(id, 1, text)))
    assert.deepEqual(texts(await world.client.history(id)), ["", "a", "", "b"])
  },
  async "169: a publisher that does not wait for answers loses nothing"(world) {
    const id = await newSession(world)
    const state = (status) => ({ channel: "agentState", ...SCHEMAS.agentState.event(id), status })
    for (let round = 0; round < 5; round++) {
      const events = upTo(10).map((i) => asChunk(id, 1, `${round} ${i}`))
      await Promise.all([...events, state("completed"), state("running")].map((event) => world.client.publish(id, event)))
    }
    const said = (await world.client.history(id)).filter((r) => r.channel === "chunks")
    assert.deepEqual(texts(said).sort(), upTo(50).map((i) => `${Math.floor(i / 10)} ${i % 10}`))
  },
  async "233: all events of a call are stored: outputs of one that runs, and what comes after its result"(world) {
    const id = await newSession(world)
    const call = (status, output) => ({ channel: "toolCalls", ...SCHEMAS.toolCalls.event(id), status, output })
    const published = [call("pending", null), call("running", "part"), call("running", "part and more"), call("complete", "all"), call("complete", "all"), call("error", "late")]
    await publishAll(world, id, published)
    assert.deepEqual((await world.client.history(id)).map((r) => ({ channel: r.channel, ...r.data })), published)
  },
  async "208, 233, 267: offsets are assigned in each session from 0, without gaps"(world) {
    const ids = [await newSession(world), await newSession(world)]
    for (const i of upTo(20)) await world.client.publish(ids[i % 2], asChunk(ids[i % 2], 1, `text ${i}`))
    for (const [n, id] of ids.entries()) {
      const rows = await world.client.history(id)
      assert.deepEqual(offsets(rows), upTo(10))
      assert.deepEqual(texts(rows), upTo(10).map((i) => `text ${2 * i + n}`))
    }
  },
  async "208: many publish at once, and each event has an offset of its own"(world) {
    const id = await newSession(world)
    const agents = upTo(8).map((i) => `agent-${i}`)
    const publish = () => Promise.all(agents.map((agent) => publishAll(world, id, upTo(10).map((i) => asChunk(id, 1, `${i}`, agent)))))
    const { live, replayed, stored } = await everywhere(world, id, publish, 80)
    assert.deepEqual(offsets(live), upTo(80))
    assert.deepEqual(live, stored)
    assert.deepEqual(replayed, stored)
    for (const agent of agents) assert.deepEqual(texts(live.filter((r) => r.data.agentId === agent)), upTo(10).map(String))
  },
  async "10, 169-170: what is heard live, replayed and stored is the same"(world) {
    const id = await newSession(world)
    const { live, replayed, stored } = await everywhere(world, id, () => publishAll(world, id, example(id)), 5)
    assert.equal(stored.length, 5)
    assert.deepEqual(live, stored)
    assert.deepEqual(replayed, stored)
  },
  async "106: all subscribers hear all events"(world) {
    const id = await newSession(world)
    const subscriptions = upTo(5).map(() => world.client.subscribe(id))
    await Promise.all(subscriptions.map((s) => s.opened))
    await publishAll(world, id, example(id))
    for (const s of subscriptions) assert.deepEqual(await s.until(last(5)), await world.client.history(id))
    subscriptions.forEach((s) => s.close())
  },
  async "171-177, 225: an event is stored before it is heard"(world) {
    const id = await newSession(world)
    const subscription = world.client.subscribe(id)
    const found = []
    subscription.onRow = (row) => found.push(world.client.events(id, { fromOffset: row.offset, limit: 1 }))
    await subscription.opened
    await publishAll(world, id, chunks(id, 20))
    assert.deepEqual((await Promise.all((await subscription.until(last(20)), found))).flat(), subscription.rows)
    subscription.close()
  },
  async "280-281: a client that reconnects with fromOffset=2 receives only 2, 3 and 4"(world) {
    const id = await exampleSession(world)
    const again = world.client.subscribe(id, { fromOffset: 2 })
    assert.deepEqual((await again.until(last(5))).map((r) => [r.offset, r.type, r.channel]), [[2, "tool", "toolCalls"], [3, "chunk", "chunks"], [4, "complete", "agentState"]])
    await world.client.publish(id, asChunk(id, 2, "later"))
    assert.deepEqual(offsets(await again.until(last(6))), [2, 3, 4, 5], "nothing came between")
    again.close()
    assert.deepEqual(offsets(await world.client.events(id, { fromOffset: 2 })), [2, 3, 4, 5])
  },
  async "11, 209: a subscriber can begin at every offset, also at the next one"(world) {
    const id = await exampleSession(world)
    const subscriptions = upTo(6).map((fromOffset) => world.client.subscribe(id, { fromOffset }))
    await Promise.all(subscriptions.map((s) => s.opened))
    await world.client.publish(id, asChunk(id, 2, "later"))
    const rows = await world.client.history(id)
    for (const [from, s] of subscriptions.entries()) {
      assert.deepEqual(await s.until(last(6)), rows.slice(from), `from ${from}`)
      assert.deepEqual(await world.client.history(id, { fromOffset: from }), rows.slice(from), `from ${from}`)
      s.close()
    }
  },
  async "193: events come in pages"(world) {
    const id = await newSession(world)
    await world.client.publish(id, chunks(id, 25))
    const rows = await world.client.events(id)
    assert.deepEqual(offsets(rows), upTo(25))
    assert.deepEqual(await world.client.events(id, { limit: 4 }), rows.slice(0, 4))
    assert.deepEqual(await world.client.events(id, { fromOffset: 22, limit: 4 }), rows.slice(22))
    assert.deepEqual(await world.client.events(id, { fromOffset: 25 }), [])
    for (const limit of [1, 7, 25, 100]) assert.deepEqual(await world.client.history(id, { limit }), rows)
  },
  async "12, 97: events are read by channel and by agent"(world) {
    const id = await newSession(world)
    for (const i of upTo(3)) {
      const agentId = ["coder", "tester", "coder"][i]
      for (const channel of CHANNELS) {
        const event = SCHEMAS[channel].event(id)
        await world.client.publish(id, { channel, ...event, ...(event.agentId && { agentId }), ...(event.id && { id: `${event.id}.${i}` }) })
      }
    }
    const rows = await world.client.history(id)
    assert.equal(rows.length, 18)
    for (const channel of CHANNELS) {
      const some = rows.filter((r) => r.channel === channel)
      assert.equal(some.length, 3)
      assert.deepEqual(await world.client.events(id, { channel }), some)
      assert.deepEqual(await world.client.history(id, { channel, limit: 2, fromOffset: 6 }), some.slice(1), `${channel} in pages`)
    }
    for (const agent of ["coder", "tester"]) {
      const some = rows.filter((r) => r.data.agentId === agent)
      assert.deepEqual(await world.client.events(id, { agent }), some)
      assert.deepEqual(await world.client.events(id, { agent, channel: "chunks" }), some.filter((r) => r.channel === "chunks"))
    }
  },
  async "133-140, 263: a tool call that is pending, runs and is complete is three events"(world) {
    const id = await newSession(world)
    const call = { id: "call7", agentId: "coder", sessionId: id, tool: "Bash", input: { command: "make" } }
    const steps = [{ ...call, status: "pending" }, { ...call, status: "running" }, { ...call, output: "built", status: "complete", duration: 1250 }]
    const read = await everywhere(world, id, () => publishAll(world, id, steps.map((e) => ({ channel: "toolCalls", ...e }))), 3)
    for (const rows of Object.values(read)) {
      assert.deepEqual(data(rows), steps)
      assert.deepEqual(toolCalls(rows), [steps[2]])
    }
  },
  async "253-255, 260: a replay has the order and the timing of the events"(world) {
    const id = await newSession(world)
    const before = Date.now()
    for (const i of upTo(4)) {
      await world.client.publish(id, asChunk(id, 1, `text ${i}`))
      await new Promise((done) => setTimeout(done, 60)) // the timing that is replayed
    }
    const rows = await world.client.history(id)
    const atOnce = waits(rows, 1)
    assert.ok(rows.every((r) => r.timestamp >= before && r.timestamp <= Date.now()), "milliseconds since 1970")
    assert.ok(atOnce.slice(1).every((ms) => ms >= 50), `waits of ${atOnce} ms`)
    assert.deepEqual(waits(rows, 4), atOnce.map((ms) => ms / 4))
  },

  async "10, 177: what was acknowledged before kill -9 is there, once"(world) {
    const id = await newSession(world)
    for (const round of upTo(3)) {
      await publishAll(world, id, chunks(id, 5, 5 * round))
      await world.restart()
      const rows = await world.client.history(id)
      assert.deepEqual(offsets(rows), upTo(5 * round + 5))
      assert.deepEqual(texts(rows), upTo(5 * round + 5).map((i) => `text ${i}`))
      assert.deepEqual(await followed(world, id, 0, rows.length), rows)
    }
  },
  async "10, 177: kill -9 while events are published loses none and doubles none"(world) {
    const id = await newSession(world)
    const acknowledged = [], sent = []
    const publisher = async (agent) => {
      for (let i = 0; ; i++) {
        const text = `${agent} ${i}`
        sent.push(text)
        try {
          await world.client.publish(id, asChunk(id, 1, text, agent))
        } catch (err) {
          assert.equal(err.status, undefined, err.message) // the server is gone: it refused nothing
          return
        }
        acknowledged.push(text)
        if (acknowledged.length === 60) isEnough()
      }
    }
    let isEnough
    const enough = new Promise((done) => { isEnough = done })
    const publishers = ["a", "b", "c"].map(publisher)
    await enough
    await Promise.all([world.restart(), ...publishers])
    const rows = await world.client.history(id), stored = texts(rows)
    assert.deepEqual(offsets(rows), upTo(rows.length))
    assert.equal(new Set(stored).size, stored.length, "none is doubled")
    assert.deepEqual(acknowledged.filter((text) => !stored.includes(text)), [], "none is lost")
    assert.deepEqual(stored.filter((text) => !sent.includes(text)), [])
    await world.client.publish(id, asChunk(id, 2, "after"))
    assert.equal((await world.client.events(id, { fromOffset: rows.length }))[0].data.text, "after")
  },
  async "11, 280: a subscriber names its offset after kill -9, and hears each event once"(world) {
    await survives(world, {})
  },
  async "37, 53: an EventSource reconnects by itself after kill -9, and hears each event once"(world) {
    await survives(world, { native: true })
  },
}

async function survives(world, options) {
  const id = await newSession(world)
  const subscription = world.client.subscribe(id, options)
  for (const round of upTo(2)) {
    await publishAll(world, id, chunks(id, 5, 5 * round))
    await subscription.until(last(5 * round + 5))
    await world.restart()
  }
  await publishAll(world, id, chunks(id, 5, 10))
  assert.deepEqual(await subscription.until(last(15)), await world.client.history(id))
  assert.deepEqual(texts(subscription.rows), upTo(15).map((i) => `text ${i}`))
  subscription.close()
}
