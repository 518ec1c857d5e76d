// These scenarios are the uses of a program that stores its agents' contexts as events.
import assert from "node:assert/strict"

import { messagesOf, plain } from "./client.mjs"

const CALL = { id: "c1", type: "function", function: { name: "Read", arguments: '{"path":"a"}' } }
const STEPS = [
  ["system_message", { role: "system", content: "Be brief." }],
  ["user_message", { role: "user", content: "Look." }],
  ["assistant_message", { role: "assistant", content: "I look.", tool_calls: [CALL] }],
  ["tool_call", { id: "c1", name: "Read", arguments: '{"path":"a"}' }],
  ["tool_result", { tool_call_id: "c1", content: "a file" }, "c1"],
  ["assistant_message", { role: "assistant", content: "It is a file." }],
]
const ID = /^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,63}$/ // fits into VARCHAR(64)

let sessions = 0
/** A session with an instance that has the events above. */
async function filled(world) {
  const session = `notes_${++sessions}`
  await world.repository.createSession(session)
  const instance = await world.repository.createInstance(session, "coder")
  for (const step of STEPS) await world.repository.appendEvent(instance, ...step)
  return instance
}

const short = (events) => events.map((e) => `${e.sequence_number} ${e.event_type}`)
const numbered = (steps) => steps.map(([type], n) => `${n} ${type}`)
const contents = (events) => events.map((e) => e.content)
/** The instance of the agent that the server runs in a session. */
const mainOf = async (world, session) => (await world.repository.instances(session)).find((i) => i.main)
const events = async (world, session) => world.repository.getEvents(await mainOf(world, session))
const texts = async (world, session) => contents(await events(world, session)).map((c) => c.content)

export const scenarios = {
  "each instance has an id of its own, a session, a name, a parent and a time": async (world) => {
    const r = world.repository
    const seen = new Set()
    for (const session of ["one", "two"]) {
      await r.createSession(session)
      const lead = await r.createInstance(session, "lead")
      const search = await r.createInstance(session, "searcher", lead.id)
      for (const i of [lead, search]) {
        assert.match(i.id, ID)
        assert.ok(!seen.has(i.id))
        seen.add(i.id)
        assert.equal(i.session_id, session)
        assert.ok(!Number.isNaN(Date.parse(i.created_at)))
        assert.deepEqual(await r.getInstance(i), i)
      }
      assert.deepEqual([lead.agent_name, lead.parent_instance_id], ["lead", null])
      assert.deepEqual([search.agent_name, search.parent_instance_id], ["searcher", lead.id])
    }
    assert.equal(await r.getInstance({ session_id: "one", id: "nobody" }), undefined)
  },

  "five types of events are stored with dense numbers and times": async (world) => {
    const i = await filled(world)
    const events = await world.repository.getEvents(i)
    assert.deepEqual(short(events), numbered(STEPS))
    assert.deepEqual(contents(events), STEPS.map(([, content]) => content))
    assert.equal(events[4].tool_call_id, "c1")
    for (const e of events) assert.ok(!Number.isNaN(Date.parse(e.created_at)))
  },

  "events are read from a sequence number on": async (world) => {
    const i = await filled(world)
    assert.deepEqual(short(await world.repository.getEvents(i, 4)), ["4 tool_result", "5 assistant_message"])
    assert.deepEqual(await world.repository.getEvents(i, 6), [])
  },

  "the messages of the model are rebuilt from events": async (world) => {
    const i = await filled(world)
    assert.deepEqual(messagesOf(await world.repository.getEvents(i)), [
      { role: "system", content: "Be brief." }, { role: "user", content: "Look." },
      { role: "assistant", content: "I look.", tool_calls: [CALL] }, { role: "tool", tool_call_id: "c1", content: "a file" },
      { role: "assistant", content: "It is a file." },
    ])
  },

  "events after a number are deleted, and the next one takes its place": async (world) => {
    const i = await filled(world)
    assert.equal(await world.repository.deleteEventsAfter(i, 4), 1)
    assert.deepEqual(short(await world.repository.getEvents(i)), numbered(STEPS.slice(0, 5)))
    const next = await world.repository.appendEvent(i, "assistant_message", { role: "assistant", content: "It is another one." })
    assert.equal(next.sequence_number, 5)
    assert.equal(await world.repository.deleteEventsAfter(i, 99), 0)
    assert.equal(await world.repository.deleteEventsAfter(i, -1), 6)
    assert.deepEqual(await world.repository.getEvents(i), [])
  },

  "events are copied to another instance, up to a number": async (world) => {
    const from = await filled(world)
    const other = await filled(world)
    for (const [upTo, count] of [[1, 2], [4, 5], [undefined, 6]]) {
      const to = await world.repository.createInstance(other.session_id, "copy")
      assert.equal(await world.repository.copyEvents(from, to, upTo), count)
      const got = await world.repository.getEvents(to)
      assert.deepEqual(short(got), numbered(STEPS.slice(0, count)))
      assert.deepEqual(contents(got), STEPS.slice(0, count).map(([, content]) => content))
    }
    assert.equal((await world.repository.getEvents(from)).length, 6)
  },

  "two instances of a session do not mix": async (world) => {
    const i = await filled(world)
    const other = await world.repository.createInstance(i.session_id, "tester", i.id)
    await world.repository.appendEvent(other, "user_message", { role: "user", content: "Test." })
    await world.repository.deleteEventsAfter(i, 1)
    assert.deepEqual(short(await world.repository.getEvents(other)), ["0 user_message"])
  },

  "stored events survive a kill": async (world) => {
    const i = await filled(world)
    const before = await world.repository.getEvents(i)
    await world.restart()
    assert.deepEqual(await world.repository.getEvents(i), before)
    assert.deepEqual((await world.repository.getInstance(i)).id, i.id)
  },

  "a run stores all messages, and the model's next request is rebuilt from them": async (world) => {
    const first = await world.cli("run", "[tool] look", "--agent", "model")
    assert.equal(first.code, 0, first.stderr)
    const stored = await events(world, first.session)
    assert.deepEqual(short(stored).slice(0, 2), ["0 system_message", "1 user_message"])
    assert.deepEqual(stored.map((e) => e.event_type).slice(2), ["assistant_message", "tool_call", "tool_result", "assistant_message"])

    assert.equal((await world.cli("run", "and now", "--resume", first.session)).code, 0)
    const rebuilt = messagesOf((await events(world, first.session)).slice(0, -1)) // all but the answer to the request
    assert.deepEqual(rebuilt, world.model.requests.at(-1).map(plain))
    const { messages } = await world.repository.context(first.session)
    assert.deepEqual(messages.slice(0, -1).map(plain), rebuilt)
  },

  "--resume continues a run that was killed, and every later request tells the model so": async (world) => {
    const started = world.cli("run", "[hang] first", "--agent", "model")
    await world.until(async () => {
      const [s] = await world.list()
      return s?.status === "running" && (await texts(world, s.id)).includes(`Answer ${world.model.requests.length}.`)
    })
    await world.restart()
    const { session, stderr, code } = await started
    assert.equal(code, 1)
    assert.ok(stderr.includes(`tapedeck resume ${session}`), stderr)

    assert.equal((await world.cli("run", "--resume", session)).code, 0)
    const resumed = world.model.requests.at(-1)
    assert.ok(resumed.at(-1).content.includes("interrupted"), resumed.at(-1).content)
    assert.equal((await world.cli("run", "next", "--resume", session)).code, 0)
    const next = world.model.requests.at(-1).map(plain)
    assert.deepEqual(next.slice(0, resumed.length), resumed.map(plain), "what was told stays told")
    assert.deepEqual(messagesOf((await events(world, session)).slice(0, -1)), next)
  },

  "--copy makes a session with the state of another, up to a number": async (world) => {
    const source = await world.cli("run", "one", "--agent", "model")
    await world.cli("run", "two", "--resume", source.session)
    const before = await events(world, source.session)
    assert.deepEqual(before.map((e) => e.event_type), ["system_message", "user_message", "assistant_message", "user_message", "assistant_message"])

    const whole = await world.cli("run", "three", "--copy", source.session)
    assert.equal(whole.code, 0, whole.stderr)
    assert.notEqual(whole.session, source.session)
    assert.deepEqual(contents(await events(world, whole.session)).slice(0, 5), contents(before))

    const part = await world.cli("run", "instead", "--copy", source.session, "--to-point", "seq:2")
    assert.equal(part.code, 0, part.stderr)
    assert.ok(!part.stderr.includes("warning"), part.stderr)
    assert.deepEqual((await texts(world, part.session)).slice(0, 4), ["You are a test.", "one", before[2].content.content, "instead"])
    assert.deepEqual(world.model.requests.at(-1).map((m) => m.content), ["You are a test.", "one", before[2].content.content, "instead"])

    assert.deepEqual(await events(world, source.session), before, "the source is as it was")
    const ids = await Promise.all([source, whole, part].map(async (s) => (await mainOf(world, s.session)).id))
    assert.equal(new Set(ids).size, 3, `instances of copies have ids of their own: ${ids}`)
  },

  "a copy up to a number of an instance": async (world) => {
    const i = await filled(world)
    const done = await world.cli("copy", i.session_id, "--to-point", "4", "--instance", i.id, "--json")
    assert.equal(done.code, 0, done.stderr)
    const session = JSON.parse(done.stdout).id
    const copy = (await world.repository.instances(session)).find((c) => c.former_ids?.includes(i.id))
    assert.notEqual(copy.id, i.id)
    assert.deepEqual(short(await world.repository.getEvents(copy)), numbered(STEPS.slice(0, 5)))
  },

  "--overwrite continues a session, or truncates it first": async (world) => {
    const { session } = await world.cli("run", "one", "--agent", "model")
    const answer = (await texts(world, session))[2]
    assert.equal((await world.cli("run", "two", "--overwrite", session)).code, 0)
    assert.equal((await texts(world, session)).length, 5)

    const third = await world.cli("run", "three", "--overwrite", session, "--from-point", "seq:2")
    assert.equal(third.code, 0, third.stderr)
    assert.deepEqual((await texts(world, session)).slice(0, 4), ["You are a test.", "one", answer, "three"])
    assert.deepEqual(world.model.requests.at(-1).map((m) => m.content), ["You are a test.", "one", answer, "three"])
  },

  "a missing point is refused, and changes nothing": async (world) => {
    const i = await filled(world)
    for (const point of ["seq:99", "999"]) {
      const done = await world.cli("overwrite", i.session_id, "--from-point", point, ...(point.startsWith("seq") ? ["--instance", i.id] : []))
      assert.equal(done.code, 1, done.stdout)
    }
    assert.equal((await world.repository.getEvents(i)).length, 6)
    await assert.rejects(world.repository.appendEvent(i, "thought", {}), /no event type/)
    await assert.rejects(world.repository.appendEvent(i, "tool_result", { tool_call_id: "c9", content: "?" }), /no tool call/)
  },

  "ENABLE_CONTEXT_PERSISTENCE=false stores nothing": async (world) => {
    const before = (await world.list()).length
    const done = await world.cli.with({ ENABLE_CONTEXT_PERSISTENCE: "false", TAPEDECK_DATA: "" })("run", "hello", "--agent", "hello")
    assert.equal(done.code, 0, done.stderr)
    assert.ok(done.stderr.includes("nothing is kept"), done.stderr)
    assert.equal((await world.list()).length, before)
  },
}
