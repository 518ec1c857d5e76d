// These scenarios are the uses of A2A that a client and its person notice: a turn, a
// rewind, and what happens to a turn when the server dies.
import assert from "node:assert/strict"
import { randomUUID } from "node:crypto"
import { createServer } from "node:http"

import { clients } from "./client.mjs"

const WORDS = Array.from({ length: 10 }, (_, i) => `w${i + 1}`).join(" ")
const config = (steps) => ({ tapedeckConfig: { steps } })
const QUICK = config([{ say: "You said {{task}}", rate: 1000 }])
const SLOW = config([{ say: WORDS, rate: 4 }])
const ENDLESS = config([{ repeat: 0, steps: [{ say: "on and on", rate: 20 }] }])
const rewindBefore = (invocation) => ({ kagent_rewind_before_invocation_id: invocation })

async function all(stream, until = () => false) {
  const list = []
  for await (const e of stream) {
    list.push(e)
    if (until(list)) break
  }
  return list
}

/** Folds events as a client does: the text, the state and the history. */
function fold(events) {
  const t = { state: undefined, history: [], artifacts: new Map() }
  for (const e of events) {
    if (e.kind === "task") Object.assign(t, { state: e.state, history: [...(e.history ?? [])], artifacts: new Map(e.artifacts?.map((a) => [a.id, a.text])) })
    if (e.artifact) t.artifacts.set(e.artifact, (e.append ? t.artifacts.get(e.artifact) : "") + e.delta)
    t.state = e.state ?? t.state
    if (e.kind === "statusUpdate" && e.said) t.history.push(e.said)
  }
  return { ...t, text: [...t.artifacts.values()].join("") }
}

/** The id of the newest change that a client has seen whole. */
const newest = (events) => events.findLast((e) => e.offset).offset

const texts = (history) => history.map((m) => m.text)

async function turns(c, context, n = 3) {
  const list = []
  for (let i = 1; i <= n; i++) list.push(await c.send(`turn ${i}`, { context, metadata: QUICK }))
  return list
}

/** A receiver of push notifications. It notes them as events of a client, and can refuse them. */
async function receiver(c) {
  const r = { got: [], headers: [], status: 204, wake: () => {} }
  const server = createServer((request, answer) => {
    let body = ""
    request.on("data", (d) => body += d).on("end", () => {
      answer.writeHead(r.status).end()
      if (r.status !== 204) return
      r.got.push(c.notified(JSON.parse(body)))
      r.headers.push(request.headers)
      r.wake()
    })
  })
  await new Promise((done) => server.listen(0, "127.0.0.1", done))
  r.url = `http://127.0.0.1:${server.address().port}/hook`
  r.close = () => server.close()
  r.until = async (state) => {
    while (r.got.at(-1)?.state !== state) await new Promise((done) => { r.wake = done })
  }
  return r
}

/** The scenarios of one client under the policy of a task for each run. */
const common = {
  "a message is answered": async (c) => {
    const t = await c.send("hello", { metadata: QUICK })
    assert.equal(t.state, "completed")
    assert.deepEqual(texts(t.history), ["hello", "You said hello"])
    assert.deepEqual(t.artifacts.map((a) => a.text), ["You said hello"])
    for (const m of t.history) assert.ok(m.invocation && m.invocation === m.adk, "a message has no invocation")
    assert.deepEqual(await c.get(t.id).then((g) => [g.state, texts(g.history)]), ["completed", ["hello", "You said hello"]])
  },
  "a stream begins with the task and ends with its state": async (c) => {
    const events = await all(c.stream("hello", { metadata: QUICK }))
    assert.equal(events[0].kind, "task")
    assert.equal(events[0].state, "submitted")
    assert.equal(events.at(-1).state, "completed")
    const t = fold(events), now = await c.get(events[0].id)
    assert.equal(t.text, "You said hello")
    assert.deepEqual(t.history, now.history)
    const ids = events.map((e) => e.offset).filter(Boolean)
    assert.ok(ids.length > 4 && ids.every((id, i) => /^\d+@\d+$/.test(id) && (i === 0 || parseInt(id) > parseInt(ids[i - 1]))), "the ids do not grow")
  },
  "a message that is sent twice is one task": async (c) => {
    const o = { id: randomUUID(), context: `ctx-${randomUUID()}`, metadata: QUICK }
    const a = await c.send("hello", o), b = await c.send("hello", o)
    assert.equal(a.id, b.id)
    assert.equal(b.history.length, 2)
  },
  "a client that disconnects cancels nothing": async (c) => {
    const seen = await all(c.stream("go", { metadata: config([{ say: WORDS, rate: 40 }]) }), (l) => l.length > 3)
    const rest = await all(c.resubscribe(seen[0].id, newest(seen)))
    assert.equal(rest.at(-1).state, "completed")
    assert.equal(fold(rest).text, WORDS)
  },
  "cancel": async (c) => {
    const t = await c.send("go", { metadata: ENDLESS, immediately: true })
    const cancelled = await c.cancel(t.id)
    assert.equal(cancelled.state, "canceled")
    await assert.rejects(c.cancel(t.id), /has ended, so it cannot be cancelled/)
  },
  "an unknown task is an error": async (c) => {
    await assert.rejects(c.get("nothing"), /there is no task/)
    await assert.rejects(all(c.resubscribe("a~b")), /there is no task/)
  },
  "rewind": async (c, world) => {
    const context = `ctx-${randomUUID()}`
    const list = await turns(c, context)
    const back = await all(c.stream("", { context, metadata: rewindBefore(list[1].history[0].invocation) }))
    assert.deepEqual(back.map((e) => [e.kind, e.state]), [["task", "completed"], ["statusUpdate", "completed"]])
    assert.equal(back[0].state, "completed")
    assert.deepEqual(texts(back[0].history), ["turn 1", "You said turn 1"])
    const saved = await (await fetch(`${world.url}/api/sessions/${context}/tasks`)).json()
    assert.deepEqual(saved.data.map((t) => t.id), [list[0].id])
    if (c.list) assert.deepEqual((await c.list(context)).map((t) => t.id), [list[0].id])
    const unknown = await c.send("", { context, metadata: rewindBefore("inv_unknown") })
    assert.equal(unknown.state, "failed")
    assert.match(unknown.said.text, /has no invocation/)
  },
  "push notification configs": async (c) => {
    const { id } = await c.send("hello", { metadata: QUICK })
    const mine = { id: "mine", url: "https://hook.example/a", token: "t", bearer: "b" }
    assert.deepEqual(await c.setPush(id, mine), { ...mine, task: id })
    assert.deepEqual(await c.getPush(id, "mine"), { ...mine, task: id })
    const other = await c.setPush(id, { url: "https://hook.example/b" })
    assert.ok(other.id)
    assert.deepEqual((await c.listPush(id)).map((p) => p.url).sort(), ["https://hook.example/a", "https://hook.example/b"])
    await c.deletePush(id, other.id)
    await c.deletePush(id, other.id)
    assert.deepEqual(await c.listPush(id), [{ ...mine, task: id }])
    await assert.rejects(c.getPush(id, "none"), /does not have this push notification config/)
    await assert.rejects(c.setPush(id, { url: "https://10.0.0.1/" }), /not public/)
    await assert.rejects(c.setPush("a~b", mine), /there is no task/)
  },
  "a receiver is told of a run": async (c) => {
    const hook = await receiver(c)
    try {
      const t = await c.send("hello", { metadata: QUICK, immediately: true, push: { url: hook.url, token: "t", bearer: "b" } })
      await hook.until("completed")
      const now = await c.get(t.id)
      assert.ok(hook.got.every((e) => e.id === t.id))
      assert.ok(hook.headers.every((h) => h["x-a2a-notification-token"] === "t" && h.authorization === "Bearer b"))
      assert.equal(fold(hook.got).text, "You said hello")
      assert.deepEqual(fold(hook.got).history, hook.got[0].kind === "task" ? now.history : now.history.slice(1))
    } finally {
      hook.close()
    }
  },
  "a receiver is told of a run that kill -9 ends": async (c, world) => {
    const hook = await receiver(c)
    try {
      const t = await c.send("go", { metadata: SLOW, immediately: true, push: { url: hook.url } })
      await hook.until("working")
      hook.status = 503
      await all(c.resubscribe(t.id), (l) => l.length > 3)
      await world.restart()
      hook.status = 204
      await hook.until("failed")
      assert.match(hook.got.at(-1).said.text, /the server was restarted while the agent was running/)
      assert.equal((await c.get(t.id)).state, "failed")
    } finally {
      hook.close()
    }
  },
  "kill -9 in the middle of a run": async (c, world) => {
    const seen = []
    await assert.rejects(async () => {
      for await (const e of c.stream("go", { metadata: SLOW })) {
        seen.push(e)
        if (seen.length === 5) await world.restart()
      }
      throw new Error("the stream ended")
    })
    const id = seen[0].id
    const now = await c.get(id)
    assert.equal(now.state, "failed") // a stock server leaves it working for ever
    assert.match(now.said.text, /the server was restarted while the agent was running/)
    await assert.rejects(all(c.resubscribe(id)), /has ended/)
    const rest = await all(c.resubscribe(id, newest(seen)))
    assert.equal(rest[0].kind, "task")
    assert.equal(rest[0].offset, newest(seen))
    assert.equal(fold([rest[0]]).text, fold(seen).text)
    assert.equal(rest.at(-1).state, "failed")
    assert.deepEqual(fold(rest).history, now.history)
    const next = await c.send("again", { context: now.context, metadata: QUICK })
    assert.equal(next.state, "completed")
  },
  "kill -9 after a run": async (c, world) => {
    const events = await all(c.stream("hello", { metadata: QUICK }))
    await world.restart()
    for (const [i, e] of events.entries()) {
      if (!e.offset) continue
      const rest = await all(c.resubscribe(events[0].id, e.offset))
      assert.equal(rest[0].offset, e.offset)
      assert.deepEqual(rest.slice(1), events.slice(i + 1))
    }
  },
}

/** The scenarios of a server where each run is a task. */
export const perTurn = {
  "each agent has a card": async (world) => {
    const { agents } = await (await fetch(`${world.url}/api/v1/agents`)).json()
    for (const { name } of agents) {
      const card = await (await fetch(`${world.agent(name)}.well-known/agent-card.json`)).json()
      assert.equal(card.name, name)
      assert.deepEqual(card.supportedInterfaces.map((i) => `${i.protocolBinding} ${i.protocolVersion}`), ["JSONRPC 1.0", "HTTP+JSON 1.0", "JSONRPC 0.3"])
    }
    const first = await (await fetch(`${world.url}/.well-known/agent-card.json`)).json()
    assert.equal(first.name, agents[0].name)
  },
  "the extended card": async (world) => {
    const card = await (await clients["1.0 JSON-RPC"](world.agent("hello"))).extendedCard()
    assert.equal(card.name, "hello")
  },
}
for (const [version, make] of Object.entries(clients)) {
  for (const [name, play] of Object.entries(common)) {
    perTurn[`${version}: ${name}`] = async (world) => play(await make(world.agent("hello")), world)
  }
}

/** The scenarios of a server where a session is one task. */
export const perSession = {}
for (const [version, make] of Object.entries(clients)) {
  perSession[`${version}: one task with a stable id, and rewind`] = async (world) => {
    const c = await make(world.agent("hello")), context = `ctx-${randomUUID()}`
    const list = await turns(c, context)
    assert.deepEqual(list.map((t) => [t.id, t.state, t.history.length]), [[context, "completed", 2], [context, "completed", 4], [context, "completed", 6]])
    const back = await all(c.stream("", { context, task: context, metadata: rewindBefore(list[2].history[2].invocation) }))
    assert.deepEqual(back.map((e) => [e.kind, e.id, e.state]), [["task", context, "completed"], ["statusUpdate", context, "completed"]])
    assert.deepEqual(texts(back[0].history), ["turn 1", "You said turn 1"])
    await world.restart()
    const saved = await (await fetch(`${world.url}/api/sessions/${context}/tasks`)).json()
    assert.deepEqual(saved.data.map((t) => [t.id, t.history.length]), [[context, 2]])
    const next = await c.send("turn 4", { context, task: context, metadata: QUICK })
    assert.deepEqual(texts(next.history), ["turn 1", "You said turn 1", "turn 4", "You said turn 4"])
  }
}
