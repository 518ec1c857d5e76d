// One check for each sentence of the document. The numbers are its lines.
import assert from "node:assert/strict"

import { ContextService, messagesOf, plain } from "./client.mjs"

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const CALLS = ["c1", "c2"].map((id) => ({ id, type: "function", function: { name: "Read", arguments: `{"path":"${id}"}` } }))
const STEPS = [
  ["system_message", { role: "system", content: "Be brief." }],
  ["user_message", { role: "user", content: "Look." }],
  ["assistant_message", { role: "assistant", content: null, tool_calls: CALLS }],
  ["tool_call", { id: "c1", name: "Read", arguments: { path: "c1" } }],
  ["tool_call", { id: "c2", name: "Read", arguments: '{"path":"c2"}' }],
  ["tool_result", { tool_call_id: "c1", content: "a file" }, "c1"],
  ["tool_result", { tool_call_id: "c2", content: "" }, "c2"],
  ["assistant_message", { role: "assistant", content: "They are files." }],
]

let sessions = 0
const newSession = async (world) => {
  const id = `notes_${++sessions}`
  await world.repository.createSession(id)
  return id
}
/** An instance of a new session. */
const empty = async (world, agent = "coder") => (await world.repository.createInstance(await newSession(world), agent)).id
/** An instance with the events above. */
async function filled(world, steps = STEPS) {
  const id = await empty(world)
  for (const step of steps) await world.repository.appendEvent(id, ...step)
  return id
}

const pairs = (events) => events.map((e) => [e.event_type, e.content])
const numbers = (events) => events.map((e) => e.sequence_number)
const upTo = (n) => STEPS.slice(0, n + 1).map(([type, content]) => [type, content])
const mainEvents = async (world, session) => world.repository.getEvents((await world.repository.main(session)).id)
const run = async (world, ...words) => {
  const done = await world.cli("run", ...words)
  assert.equal(done.code, 0, done.stderr)
  return done
}

/** A session of three turns with a tool each: 16 events. */
let kept
async function conversation(world) {
  const { session } = await run(world, "[tool] one", "--agent", "model")
  await run(world, "[tool] two", "--resume", session)
  await run(world, "[tool] three", "--resume", session)
  return session
}
const shared = (world) => (kept ??= conversation(world))

/** Runs a task at each point. The events up to the point are kept, then comes the task. */
async function atEachPoint(points, task) {
  const wrong = []
  for (let n = 0; n < points; n++) {
    try {
      await task(n)
    } catch (err) {
      wrong.push(`${n}: ${err.message.split("\n").slice(0, 12).join(" ")}`)
    }
  }
  assert.deepEqual(wrong, [], `${points - wrong.length} of ${points} points are right`)
}

async function continued(world, session, before, n, text) {
  const events = await mainEvents(world, session)
  assert.deepEqual(pairs(events).slice(0, n + 1), pairs(before).slice(0, n + 1))
  assert.deepEqual(pairs(events)[n + 1], ["user_message", { role: "user", content: text }])
  assert.equal(events.at(-1).event_type, "assistant_message", "the answer is in the main instance")
  assert.deepEqual(numbers(events), events.map((_, i) => i))
}

export const scenarios = {
  async "9, 41: each instance has a unique UUID"(world) {
    const ids = [await empty(world), await empty(world), (await world.repository.main(await shared(world))).id]
    for (const id of ids) assert.match(id, UUID)
    assert.equal(new Set(ids).size, 3)
  },
  async "22, 42-45: an instance has its session, name, parent and time"(world) {
    const session = await newSession(world)
    const lead = await world.repository.createInstance(session, "lead")
    const search = await world.repository.createInstance(session, "searcher", lead.id)
    assert.deepEqual([lead.session_id, lead.agent_name, lead.parent_instance_id], [session, "lead", null])
    assert.deepEqual([search.agent_name, search.parent_instance_id], ["searcher", lead.id])
    assert.ok(!Number.isNaN(Date.parse(lead.created_at)))
    assert.deepEqual((await world.repository.instances(session)).map((i) => i.id), [lead.id, search.id])
  },
  async "44: the parent is an instance"(world) {
    await assert.rejects(world.repository.createInstance(await newSession(world), "x", "9b2f1c9e-0000-4000-8000-000000000000"), /no instance/)
  },
  async "90: an instance is found by its id alone, also after kill -9; an unknown one is none"(world) {
    const session = await newSession(world)
    const i = await world.repository.createInstance(session, "coder")
    assert.deepEqual(await world.repository.getInstance(i.id), i)
    const ran = await world.repository.main(await shared(world))
    assert.equal((await world.repository.getInstance(ran.id)).session_id, await shared(world))
    await world.restart()
    assert.deepEqual(await world.repository.getInstance(i.id), i)
    assert.equal(await world.repository.getInstance("9b2f1c9e-0000-4000-8000-000000000000"), null)
  },
  async "27-33, 58-61: the five types of events are stored as they are given"(world) {
    const events = await world.repository.getEvents(await filled(world))
    assert.deepEqual(pairs(events), upTo(7))
    assert.equal(events[5].tool_call_id, "c1")
  },
  async "58, 66: sequence numbers are unique and have no gaps"(world) {
    assert.deepEqual(numbers(await world.repository.getEvents(await filled(world))), [0, 1, 2, 3, 4, 5, 6, 7])
  },
  async "91: each append is one event, and is answered with it"(world) {
    const id = await empty(world)
    for (const [n, [type, content, call]] of STEPS.entries()) {
      const e = await world.repository.appendEvent(id, type, content, call)
      assert.deepEqual([e.sequence_number, e.event_type, e.content], [n, type, content])
      assert.equal((await world.repository.getEvents(id)).length, n + 1)
    }
  },
  async "32, 91: a tool_call without a message before it is one event"(world) {
    const id = await empty(world)
    await world.repository.appendEvent(id, "user_message", { role: "user", content: "Look." })
    await world.repository.appendEvent(id, "tool_call", { id: "c1", name: "Read", arguments: {} })
    await world.repository.appendEvent(id, "tool_result", { tool_call_id: "c1", content: "x" })
    assert.deepEqual((await world.repository.getEvents(id)).map((e) => e.event_type), ["user_message", "tool_call", "tool_result"])
  },
  async "29-33, 60: null, objects and further members stay"(world) {
    const steps = [
      ["user_message", { role: "user", content: "hi", name: "ada" }],
      ["assistant_message", { role: "assistant", content: null, tool_calls: [{ id: "c1", type: "function", function: { name: "Read", arguments: '{"path":["c1",null,1.5]}' } }] }],
      ["tool_call", { id: "c1", name: "Read", arguments: { path: ["c1", null, 1.5] } }],
      ["tool_result", { tool_call_id: "c1", content: null, name: "Read" }],
      ["assistant_message", { role: "assistant", content: "" }],
    ]
    assert.deepEqual(pairs(await world.repository.getEvents(await filled(world, steps))), steps)
  },
  async "11, 32-33: a model that numbers its calls anew in each turn"(world) {
    const turn = (text) => STEPS.slice(1, 7).map(([type, content]) =>
      [type, type === "user_message" ? { role: "user", content: text } : content, ...(type === "tool_result" ? [content.tool_call_id] : [])])
    const steps = [...turn("One."), ...turn("Two."), ["tool_call", { id: "c1", name: "Read", arguments: "{}" }], ["tool_result", { tool_call_id: "c1", content: "" }]]
    const want = steps.map(([type, content]) => [type, content])
    const id = await filled(world, steps)
    const events = await world.repository.getEvents(id)
    assert.deepEqual(pairs(events), want)
    assert.deepEqual(events.map((e) => e.content.tool_call_id ?? null), events.map((e) => e.event_type === "tool_result" ? e.tool_call_id : null))
    const to = await empty(world)
    for (let n = 1; n < 3; n++) assert.equal(await world.repository.copyEvents(id, to), steps.length)
    assert.deepEqual(pairs(await world.repository.getEvents(to)), [...want, ...want])
    for (let n = steps.length - 2; n >= 0; n -= 3) {
      await world.repository.deleteEventsAfter(id, n)
      assert.deepEqual(pairs(await world.repository.getEvents(id)), want.slice(0, n + 1))
      await world.repository.appendEvent(id, ...steps[n + 1])
    }
  },
  async "11, 19, 127: the model gets the ids of calls that were used again"(world) {
    const session = await newSession(world)
    const { id } = await world.repository.createInstance(session, "model")
    for (const step of [...STEPS, ...STEPS.slice(1)]) await world.repository.appendEvent(id, ...step)
    await run(world, "and now", "--resume", session)
    const sent = world.model.requests.at(-1).filter((m) => m.role !== "system").map(plain)
    assert.deepEqual(sent.slice(0, -1), messagesOf([...STEPS.slice(1), ...STEPS.slice(1)].map(([event_type, content]) => ({ event_type, content }))).map(plain))
  },
  async "32: a tool_call has the arguments that were carried out"(world) {
    const steps = [STEPS[1], ["assistant_message", { role: "assistant", content: "", tool_calls: [{ id: "c1", type: "function", function: { name: "Read", arguments: '{"path":' } }] }],
      ["tool_call", { id: "c1", name: "Read", arguments: { path: "c1" } }], ["tool_result", { tool_call_id: "c1", content: "" }, "c1"]]
    assert.deepEqual(pairs(await world.repository.getEvents(await filled(world, steps))), steps.map(([type, content]) => [type, content]))
  },
  async "19, 92: polling from the number that the answer names gets each event whole"(world) {
    const asked = world.model.requests.length
    const started = world.cli("run", "[hang] first", "--agent", "model")
    let read = []
    await world.until(async () => {
      const [s] = await world.list()
      if (s?.status !== "running") return false
      const { id } = await world.repository.main(s.id)
      const { events, next } = await world.repository.call("GET", `${await world.repository.path(id)}/events?from=${read.length}`)
      read = read.concat(events.slice(0, next - read.length))
      return world.model.requests.length > asked && JSON.stringify(events).includes("Answer")
    })
    assert.deepEqual(read.map((e) => e.event_type), ["system_message", "user_message"], "the text that streams is not behind next")
    await world.restart()
    const { session } = await started
    assert.equal((await mainEvents(world, session))[2].content.content, `Answer ${world.model.requests.length}.`)
  },
  async "56-57, 61: each event has an id of its own and its instance; only a result has a tool_call_id"(world) {
    const from = await filled(world)
    const to = await empty(world)
    await world.repository.copyEvents(from, to)
    const all = [...(await world.repository.getEvents(from)), ...(await world.repository.getEvents(to))]
    assert.equal(new Set(all.map((e) => e.id)).size, 2 * STEPS.length)
    assert.deepEqual(all.map((e) => e.instance_id), all.map((_, n) => (n < STEPS.length ? from : to)))
    for (const e of all) assert.equal("tool_call_id" in e, e.event_type === "tool_result")
    const added = await world.repository.appendEvent(from, "user_message", { role: "user", content: "More." })
    assert.equal(added.instance_id, from)
    assert.deepEqual((await world.repository.getEvents(from)).at(-1), added)
  },
  async "33: the content of a result is any JSON"(world) {
    for (const content of [{ rows: [1, 2.5, null] }, [{ type: "text", text: "r" }], 7, true, null, ""]) {
      const id = await filled(world, STEPS.slice(0, 5))
      const added = await world.repository.appendEvent(id, "tool_result", { tool_call_id: "c1", content })
      assert.deepEqual(added.content, { tool_call_id: "c1", content })
      assert.deepEqual((await world.repository.getEvents(id)).at(-1), added)
    }
  },
  async "10, 62: each event has a time"(world) {
    for (const e of await world.repository.getEvents(await filled(world))) assert.ok(!Number.isNaN(Date.parse(e.created_at)))
  },
  async "92, 112: events are read from a sequence number on"(world) {
    const id = await filled(world)
    for (let n = 0; n <= 8; n++) assert.deepEqual(numbers(await world.repository.getEvents(id, n)), [0, 1, 2, 3, 4, 5, 6, 7].slice(n))
  },
  async "92: past the end there are no events"(world) {
    const id = await filled(world)
    assert.deepEqual(await world.repository.getEvents(id, 9), [])
    assert.deepEqual(await world.repository.getEvents(id, 5000), [])
  },
  async "93, 117: events after each number are deleted, and the next one takes the place"(world) {
    for (let n = -1; n < 8; n++) {
      const id = await filled(world)
      assert.equal(await world.repository.deleteEventsAfter(id, n), 7 - n, `after ${n}`)
      assert.deepEqual(pairs(await world.repository.getEvents(id)), upTo(n), `after ${n}`)
      assert.equal((await world.repository.appendEvent(id, "user_message", { role: "user", content: "Again." })).sequence_number, n + 1)
      assert.deepEqual(pairs(await world.repository.getEvents(id)).slice(0, n + 1), upTo(n), `after ${n}`)
    }
  },
  async "93: what was deleted is appended again"(world) {
    const id = await filled(world)
    await world.repository.deleteEventsAfter(id, 2)
    for (const step of STEPS.slice(3)) await world.repository.appendEvent(id, ...step)
    assert.deepEqual(pairs(await world.repository.getEvents(id)), upTo(7))
  },
  async "93: past the end nothing is deleted"(world) {
    const id = await filled(world)
    assert.equal(await world.repository.deleteEventsAfter(id, 99), 0)
    assert.equal((await world.repository.getEvents(id)).length, 8)
  },
  async "93: events of a run are deleted after each number"(world) {
    const session = await conversation(world)
    const { id } = await world.repository.main(session)
    const before = pairs(await world.repository.getEvents(id))
    for (let n = 14; n >= 0; n--) {
      assert.equal(await world.repository.deleteEventsAfter(id, n), 1, `after ${n}`)
      assert.deepEqual(pairs(await world.repository.getEvents(id)), before.slice(0, n + 1), `after ${n}`)
    }
  },
  async "93, 117: a context of more than 10,000 messages can be shortened"(world) {
    const session = await newSession(world)
    const { id } = await world.repository.createInstance(session, "coder")
    await world.repository.appendEvent(id, "user_message", { role: "user", content: "First." })
    const message = (n) => ({ type: "message.added", data: { message: { id: `m${n}`, role: "user", content: `${n}` } } })
    for (let n = 0; n < 20_000; n += 500) await world.repository.call("POST", `/sessions/${session}/events`, Array.from({ length: 500 }, (_, k) => message(n + k)))
    await assert.rejects(world.repository.getEvents(id), /more than 10000 messages/)
    assert.equal(await world.repository.deleteEventsAfter(id, 19_990), 10)
    assert.equal(await world.repository.deleteEventsAfter(id, 2), 19_988)
    assert.deepEqual((await world.repository.getEvents(id)).map((e) => e.content.content), ["First.", "0", "1"])
  },
  async "94, 116: events are copied up to each number"(world) {
    const from = await filled(world)
    for (let n = 0; n < 8; n++) {
      const to = await empty(world)
      assert.equal(await world.repository.copyEvents(from, to, n), n + 1)
      assert.deepEqual(pairs(await world.repository.getEvents(to)), upTo(n))
    }
    const to = await empty(world)
    assert.equal(await world.repository.copyEvents(from, to), 8)
    assert.deepEqual(pairs(await world.repository.getEvents(to)), upTo(7))
    assert.deepEqual(pairs(await world.repository.getEvents(from)), upTo(7))
  },
  async "22, 57: instances of a session do not mix"(world) {
    const session = await newSession(world)
    const ids = [(await world.repository.createInstance(session, "a")).id, (await world.repository.createInstance(session, "b")).id]
    for (const step of STEPS) for (const id of ids) await world.repository.appendEvent(id, ...step)
    await world.repository.deleteEventsAfter(ids[0], 2)
    assert.deepEqual(pairs(await world.repository.getEvents(ids[0])), upTo(2))
    assert.deepEqual(pairs(await world.repository.getEvents(ids[1])), upTo(7))
  },
  async "19: events do not change, also after kill -9"(world) {
    const id = await filled(world)
    const before = await world.repository.getEvents(id)
    await world.restart()
    assert.deepEqual(await world.repository.getEvents(id), before)
    assert.equal((await world.repository.appendEvent(id, "user_message", { role: "user", content: "Go on." })).sequence_number, 8)
  },
  async "59: an unknown type is refused, and writes nothing"(world) {
    const id = await filled(world)
    await assert.rejects(world.repository.appendEvent(id, "thought", {}), /no event type/)
    assert.equal((await world.repository.getEvents(id)).length, 8)
  },
  async "61: a result of a call that is not there is refused"(world) {
    await assert.rejects(world.repository.appendEvent(await filled(world), "tool_result", { tool_call_id: "c9", content: "?" }), /no tool call/)
  },
  async "108-109: a service appends messages and returns the list"(world) {
    const s = new ContextService(world.repository, await empty(world))
    await s.appendMessage("system", "Be brief.")
    await s.appendMessage("user", "Look.")
    await s.appendMessage("assistant", null, CALLS)
    await s.appendMessage("tool", "a file", null, "c1")
    await s.appendMessage("tool", "another", null, "c2")
    assert.deepEqual(await s.getMessages(), [
      { role: "system", content: "Be brief." }, { role: "user", content: "Look." }, { role: "assistant", content: null, tool_calls: CALLS },
      { role: "tool", tool_call_id: "c1", content: "a file" }, { role: "tool", tool_call_id: "c2", content: "another" },
    ])
  },
  async "113: the last sequence number is that of the last message"(world) {
    const s = new ContextService(world.repository, await empty(world))
    assert.equal(await s.getLastSequence(), -1)
    await s.appendMessage("user", "Look.")
    await s.appendMessage("assistant", null, CALLS)
    assert.equal(await s.getLastSequence(), 1)
  },
  async "112, 116-117: a service replays, copies and truncates"(world) {
    const s = new ContextService(world.repository, await filled(world))
    assert.deepEqual(await s.replayFromSequence(6), [{ role: "tool", tool_call_id: "c2", content: "" }, STEPS[7][1]])
    const to = new ContextService(world.repository, await empty(world))
    await s.copyToNewInstance(to.instance, 1)
    assert.deepEqual(await to.getMessages(), [STEPS[0][1], STEPS[1][1]])
    await s.truncateAfterSequence(1)
    assert.deepEqual(await s.getMessages(), await to.getMessages())
  },
  async "10-11, 127-129, 207: a run stores all messages, calls and results"(world) {
    const events = await mainEvents(world, await shared(world))
    const turn = ["user_message", "assistant_message", "tool_call", "tool_result", "assistant_message"]
    assert.deepEqual(events.map((e) => e.event_type), ["system_message", ...turn, ...turn, ...turn])
    assert.deepEqual(events[2].content.tool_calls.map((k) => k.id), [events[3].content.id])
  },
  async "19, 127: the model's next request is rebuilt from the events"(world) {
    const { session } = await run(world, "[tool] look", "--agent", "model")
    await run(world, "and now", "--resume", session)
    assert.deepEqual(messagesOf((await mainEvents(world, session)).slice(0, -1)).map(plain), world.model.requests.at(-1).map(plain))
  },
  async "139: a run makes an instance, and a resumed one does not"(world) {
    const { session } = await run(world, "one", "--agent", "model")
    const before = await world.repository.instances(session)
    await run(world, "two", "--resume", session)
    const after = await world.repository.instances(session)
    assert.deepEqual(after.map((i) => i.id), before.map((i) => i.id))
    assert.equal(after.length, 1)
  },
  async "148, 208: --resume continues a run that was killed"(world) {
    const asked = world.model.requests.length
    const started = world.cli("run", "[hang] first", "--agent", "model")
    await world.until(async () => {
      const [s] = await world.list()
      return world.model.requests.length > asked && s?.status === "running" && JSON.stringify(await mainEvents(world, s.id)).includes(`Answer ${world.model.requests.length}.`)
    })
    await world.restart()
    const { session } = await started
    const before = pairs(await mainEvents(world, session))
    await run(world, "--resume", session)
    assert.deepEqual(pairs(await mainEvents(world, session)).slice(0, before.length), before)
  },
  async "148, 208: --resume without a task answers a message that is last"(world) {
    const answers = async (session, before) => {
      const said = pairs(before).filter(([type]) => type !== "system_message")
      const asked = world.model.requests.length
      await run(world, "--resume", session)
      const events = (await mainEvents(world, session)).filter((e) => e.event_type !== "system_message")
      assert.deepEqual(pairs(events).slice(0, said.length), said)
      assert.ok(events.slice(said.length).every((e) => e.event_type !== "user_message"), "no message is added")
      assert.equal(events.at(-1).event_type, "assistant_message")
      assert.deepEqual(world.model.requests[asked].filter((m) => m.role !== "system").map(plain), messagesOf(before).filter((m) => m.role !== "system").map(plain))
    }
    const session = await newSession(world)
    const { id } = await world.repository.createInstance(session, "model")
    await world.repository.appendEvent(id, "user_message", { role: "user", content: "Who are you?" })
    await answers(session, await world.repository.getEvents(id))
    const source = await shared(world)
    const before = await mainEvents(world, source)
    for (const n of [1, 6, 11]) {
      await answers((await world.cli("copy", source, "--to-point", String(n))).stdout.trim(), before.slice(0, n + 1))
      const whole = (await world.cli("copy", source)).stdout.trim()
      await world.cli("overwrite", whole, "--from-point", String(n))
      await answers(whole, before.slice(0, n + 1))
    }
  },
  async "148: --resume of a run that was cut in two does not tell the agent"(world) {
    const source = await shared(world)
    for (const n of [2, 3, 4]) {
      const { stdout } = await world.cli("copy", source, "--to-point", String(n))
      await run(world, "--resume", stdout.trim())
      assert.equal(world.model.requests.at(-1).at(-1).content, "Continue where you left off.")
    }
  },
  async "149, 209: --copy makes a session with the copied state"(world) {
    const source = await shared(world)
    const before = await mainEvents(world, source)
    const { session } = await run(world, "four", "--copy", source)
    assert.notEqual(session, source)
    await continued(world, session, before, 15, "four")
    assert.deepEqual(await mainEvents(world, source), before, "the source is as it was")
    assert.notEqual((await world.repository.main(session)).id, (await world.repository.main(source)).id)
  },
  async "12, 150: --to-point N copies up to each of 16 sequence numbers"(world) {
    const source = await shared(world)
    const before = await mainEvents(world, source)
    await atEachPoint(16, async (n) => {
      const { session } = await run(world, "four", "--copy", source, "--to-point", String(n))
      await continued(world, session, before, n, "four")
    })
    assert.deepEqual(await mainEvents(world, source), before)
  },
  async "150: copy without a task, up to a number, has exactly these events"(world) {
    const source = await shared(world)
    const before = pairs(await mainEvents(world, source))
    await atEachPoint(16, async (n) => {
      const { stdout } = await world.cli("copy", source, "--to-point", String(n))
      assert.deepEqual(pairs(await mainEvents(world, stdout.trim())), before.slice(0, n + 1))
    })
  },
  async "150, 152: a message with two calls is cut at each number, and keeps its calls"(world) {
    const { session } = await run(world, "[tools] both", "--agent", "model")
    const before = await mainEvents(world, session)
    assert.deepEqual(before.map((e) => e.event_type), ["system_message", "user_message", "assistant_message", "tool_call", "tool_call", "tool_result", "tool_result", "assistant_message"])
    await atEachPoint(8, async (n) => {
      const copy = await run(world, "next", "--copy", session, "--to-point", String(n))
      await continued(world, copy.session, before, n, "next")
      const whole = (await world.cli("copy", session)).stdout.trim()
      await run(world, "next", "--overwrite", whole, "--from-point", String(n))
      await continued(world, whole, before, n, "next")
    })
  },
  async "151, 210: --overwrite continues the session"(world) {
    const { session } = await run(world, "one", "--agent", "model")
    const before = await mainEvents(world, session)
    await run(world, "two", "--overwrite", session)
    await continued(world, session, before, 2, "two")
  },
  async "152, 210: --from-point N deletes the events after each of 16 sequence numbers first"(world) {
    const source = await shared(world)
    const before = await mainEvents(world, source)
    await atEachPoint(16, async (n) => {
      const { stdout } = await world.cli("copy", source)
      const session = stdout.trim()
      await run(world, "four", "--overwrite", session, "--from-point", String(n))
      await continued(world, session, before, n, "four")
    })
  },
  async "151-152: the main instance of an overwritten copy stays, and gets the answers"(world) {
    const source = await shared(world)
    const { session } = await run(world, "four", "--copy", source)
    const before = await world.repository.instances(session)
    await run(world, "five", "--overwrite", session, "--from-point", "5")
    const after = await world.repository.instances(session)
    assert.deepEqual(after.map((i) => i.id), before.map((i) => i.id))
    assert.equal(after.length, 1)
    await continued(world, session, await mainEvents(world, source), 5, "five")
  },
  async "22, 152: --from-point N leaves the events of other instances"(world) {
    const { session } = await run(world, "one", "--agent", "model")
    const { id } = await world.repository.createInstance(session, "helper")
    await world.repository.appendEvent(id, "user_message", { role: "user", content: "Stay." })
    await run(world, "two", "--overwrite", session, "--from-point", "1")
    await world.cli("overwrite", session, "--from-point", "0")
    assert.deepEqual(pairs(await world.repository.getEvents(id)), [["user_message", { role: "user", content: "Stay." }]])
    assert.equal((await mainEvents(world, session)).length, 1)
  },
  async "127, 138, 148: --resume continues an instance that the repository has created"(world) {
    const session = await newSession(world)
    const { id } = await world.repository.createInstance(session, "model")
    for (const step of STEPS) await world.repository.appendEvent(id, ...step)
    await run(world, "six", "--resume", session)
    assert.deepEqual((await world.repository.instances(session)).map((i) => i.id), [id])
    const events = await world.repository.getEvents(id)
    assert.deepEqual(pairs(events.slice(0, STEPS.length)), pairs(STEPS.map(([event_type, content]) => ({ event_type, content }))))
    const said = events.slice(STEPS.length).filter((e) => e.event_type !== "system_message") // the agent has its own
    assert.deepEqual(said.map((e) => e.event_type), ["user_message", "assistant_message"])
    assert.equal(said[0].content.content, "six")
  },
  async "150, 152: a point that is not there is a sentence, and loses nothing"(world) {
    const session = await shared(world)
    const before = await mainEvents(world, session)
    const count = (await world.list()).length
    for (const point of ["16", "999", "-1", "two", "1.5", ""]) {
      for (const words of [["--copy", session, "--to-point", point], ["--overwrite", session, "--from-point", point]]) {
        const done = await world.cli("run", "x", ...words)
        assert.notEqual(done.code, 0, words.join(" "))
        assert.match(done.stderr, /^tapedeck: .+/m)
      }
    }
    assert.deepEqual(await mainEvents(world, session), before)
    assert.equal((await world.list()).length, count)
  },
  async "152: a task that is refused deletes nothing"(world) {
    const session = await shared(world)
    const before = await mainEvents(world, session)
    const done = await world.cli("run", "x", "--agent", "nobody", "--overwrite", session, "--from-point", "3")
    assert.notEqual(done.code, 0)
    assert.deepEqual(await mainEvents(world, session), before)
  },
  async "148-152: a session that is not there is a sentence"(world) {
    for (const words of [["--resume", "none"], ["--copy", "none"], ["--overwrite", "none"]]) {
      const done = await world.cli("run", "x", ...words)
      assert.equal(done.code, 1)
      assert.match(done.stderr, /no session/)
    }
  },
  async "202-203: ENABLE_CONTEXT_PERSISTENCE=false stores nothing"(world) {
    const before = (await world.list()).length
    const done = await world.cli.with({ ENABLE_CONTEXT_PERSISTENCE: "false", TAPEDECK_DATA: "" })("run", "hello", "--agent", "hello")
    assert.equal(done.code, 0, done.stderr)
    assert.ok(done.stderr.includes("nothing is kept"), done.stderr)
    assert.equal((await world.list()).length, before)
  },
}
