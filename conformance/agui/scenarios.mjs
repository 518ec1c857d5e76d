// Scenarios of the official AG-UI client. A front end needs no code of ours: connect is
// the only method that the client leaves to its user, and it is three lines.
import assert from "node:assert/strict"
import { randomUUID } from "node:crypto"

/** A short run with everything: reasoning, a step, text, a tool, state. */
export const steps = (words = 12, rate = 60) => [
  { turn: true },
  { state: { n: 0 } },
  { think: "Let me think about it", rate },
  { step: "work", steps: [
    { say: Array.from({ length: words }, (_, i) => `w${i}`).join(" "), rate },
    { tool: "search", args: { q: 1, text: "a long query for the search" }, ms: 50, result: "42" },
  ] },
  { patch: [{ op: "replace", path: "/n", value: 7 }] },
  { say: "Done.", rate },
]

export const scenarios = ({ HttpAgent, runHttpRequest, transformHttpEventStream }, current) => {
  class Agent extends HttpAgent {
    connect(input) {
      return transformHttpEventStream(runHttpRequest(() => this.fetch(`${this.url}/connect`, this.requestInit(input))))
    }
  }

  /** A client of a thread, as a page has one after it was loaded. */
  const client = (server, threadId, { agent = "hello", ...more } = {}) => {
    const a = new Agent({ url: `${server.url}/agui/${agent}`, threadId, ...more })
    a.events = []
    a.seen = signal()
    a.subscribe({ onEvent({ event }) { a.events.push(event); a.seen.notify() } })
    /** Waits for an event. */
    a.until = async (found) => { while (!a.events.some(found)) await a.seen.next() }
    a.say = (text, id = randomUUID()) => a.addMessage({ id, role: "user", content: text })
    a.play = (list, more = {}) => a.runAgent({ forwardedProps: { tapedeck: { config: { steps: list } } }, ...more })
    return a
  }
  const last = (a) => a.events.at(-1)
  const thread = () => `t-${randomUUID()}`
  const mark = (event) => event.metadata?.tapedeck?.offset
  const shape = (a) => a.messages.map((m) => ({
    id: m.id, role: m.role, content: m.content, calls: m.toolCalls?.map((c) => [c.id, c.function.name, c.function.arguments]), answers: m.toolCallId,
    offset: m.role === "user" ? undefined : m.metadata?.tapedeck?.offset,
  }))
  const same = (a, b) => { assert.deepEqual(shape(a), shape(b)); assert.deepEqual(a.state, b.state) }

  return {
    async "a run is in order and complete"(server) {
      const a = client(server, thread())
      a.say("hello")
      const { newMessages } = await a.play(steps())
      assert.equal(a.events[0].type, "RUN_STARTED")
      assert.equal(last(a).type, "RUN_FINISHED")
      const marks = a.events.map(mark).filter((n) => n !== undefined)
      assert.ok(marks.length > 5 && marks.every((n, i) => i === 0 || n > marks[i - 1]), `the offsets increase: ${marks}`)
      assert.deepEqual(newMessages.map((m) => m.role), ["reasoning", "assistant", "assistant", "tool", "assistant"])
      assert.deepEqual(a.state, { n: 7 })
      const anchor = newMessages.find((m) => m.role === "assistant").metadata.tapedeck
      assert.equal(anchor.invocation, a.events[0].runId)
    },

    async "a refresh restores the thread, and a second connect changes nothing"(server) {
      const id = thread()
      const a = client(server, id)
      a.say("hello")
      await a.play(steps())
      const b = client(server, id)
      await b.connectAgent({})
      same(b, a)
      await b.connectAgent({})
      same(b, a)
    },

    async "a client with a part of the thread gets the rest"(server) {
      const id = thread()
      const a = client(server, id)
      a.say("hello")
      await a.play(steps())
      const c = client(server, id, { initialMessages: structuredClone(a.messages.slice(0, 3)) })
      c.messages[2].content = "w0 "
      await c.connectAgent({})
      same(c, a)
    },

    ...Object.fromEntries(["REASONING_MESSAGE_CONTENT", "TEXT_MESSAGE_CONTENT", "TOOL_CALL_ARGS", "TOOL_CALL_END", "STEP_FINISHED"].map((type) => [
      `a refresh at ${type} loses and doubles nothing`, async (server) => {
        const id = thread()
        const a = client(server, id)
        a.say("hello")
        const run = a.play(steps(30, 40))
        await a.until((e) => e.type === type)
        const b = client(server, id)
        await b.connectAgent({})
        await run
        assert.equal(last(b).type, "RUN_FINISHED")
        assert.equal(b.events[0].runId, a.events[0].runId)
        same(b, a)
        await b.connectAgent({})
        same(b, a)
      }])),

    async "a run outlives its client"(server) {
      const id = thread()
      const a = client(server, id)
      a.say("go")
      const run = a.play(steps(30, 40)).catch(() => {})
      await a.until((e) => e.type === "TEXT_MESSAGE_CONTENT")
      a.abortController.abort()
      await run
      const b = client(server, id)
      await b.connectAgent({})
      assert.equal(last(b).type, "RUN_FINISHED")
      assert.equal(b.messages.at(-1).content, "Done.")
      const c = client(server, id)
      await c.connectAgent({})
      same(c, b)
    },

    async "a busy thread refuses a second run before its stream"(server, warnings) {
      const id = thread()
      const a = client(server, id, { agent: "long" })
      a.say("talk")
      const run = a.runAgent()
      await a.until((e) => e.type === "TEXT_MESSAGE_CONTENT")
      const b = client(server, id)
      b.say("me, too")
      await assert.rejects(b.runAgent(), /409/)
      warnings.length = 0 // the client logs each error
      assert.deepEqual(await stop(server, "long", id), { stopped: true })
      await run
    },

    async "a stop closes what is open; the thread takes the next message"(server) {
      const id = thread()
      const a = client(server, id, { agent: "long" })
      a.say("talk")
      const run = a.runAgent()
      await a.until((e) => e.type === "TEXT_MESSAGE_CONTENT")
      assert.deepEqual(await stop(server, "long", id, { runId: "another" }), { stopped: true })
      await run
      assert.equal(last(a).type, "RUN_FINISHED")
      assert.equal(last(a).outcome?.type, current ? "cancelled" : undefined)
      assert.deepEqual(await stop(server, "long", id), { stopped: false })
      const b = client(server, id)
      await b.connectAgent({})
      same(b, a)
      a.say("again")
      await a.play(steps())
      await b.connectAgent({})
      same(b, a)
      assert.deepEqual(await stop(server, "long", id, { runId: a.events[0].runId }), { stopped: false })
    },

    async "an unknown thread is empty and no error"(server) {
      const a = client(server, thread(), { initialMessages: [{ id: "x", role: "assistant", content: "Hi!" }] })
      await a.connectAgent({})
      assert.equal(last(a).type, "RUN_FINISHED")
      assert.equal(a.messages.length, 1)
    },

    async "a run that fails says why"(server, warnings) {
      const id = thread()
      const a = client(server, id)
      a.say("fail")
      let error
      a.subscribe({ onRunErrorEvent({ event }) { error = event } })
      await a.play([{ say: "I try." }, { error: "the disk is full" }]).catch(() => {})
      assert.match(error.message, /the disk is full/)
      warnings.length = 0 // the client logs each error
      const b = client(server, id)
      await b.connectAgent({})
      assert.equal(last(b).type, "RUN_FINISHED")
      assert.equal(last(b).metadata.tapedeck.status, "failed")
      same(b, a)
    },

    async "a killed server ends the run, and a client restores the partial text"(server, warnings) {
      const id = thread()
      const a = client(server, id, { agent: "long" })
      a.say("talk")
      a.runAgent().catch(() => {})
      await a.until((e) => e.type === "TEXT_MESSAGE_CONTENT")
      const ignore = () => {} // the client does not catch the broken connection
      process.on("uncaughtException", ignore)
      await server.restart()
      process.off("uncaughtException", ignore)
      warnings.length = 0 // the client logs the broken connection
      const b = client(server, id, { agent: "long" })
      await b.connectAgent({})
      assert.equal(last(b).type, "RUN_FINISHED")
      assert.equal(last(b).metadata.tapedeck.status, "interrupted")
      const said = b.messages.at(-1).content
      assert.ok(said.startsWith(a.messages.at(-1).content), "what was shown is durable")
      b.say("again")
      await b.play(steps())
      const c = client(server, id)
      await c.connectAgent({})
      same(c, b)
    },

    async "the state of the client reaches the thread"(server) {
      const id = thread()
      const a = client(server, id, { initialState: { city: "Bern" } })
      a.say("hello")
      await a.play([{ say: "ok" }])
      assert.deepEqual(a.state, { city: "Bern" })
      const b = client(server, id)
      await b.connectAgent({})
      assert.deepEqual(b.state, { city: "Bern" })
    },

    async "an answer is asked for again after the old one was dropped"(server) {
      const id = thread()
      const a = client(server, id)
      a.say("hello", "u1")
      await a.play([{ say: "first" }])
      a.say("more", "u2")
      await a.play([{ say: "second" }])
      a.setMessages(a.messages.slice(0, 3))
      await a.play([{ say: "third" }])
      const texts = ["hello", "first", "more", "third"]
      assert.deepEqual(a.messages.map((m) => m.content), texts)
      const b = client(server, id)
      await b.connectAgent({})
      assert.deepEqual(b.messages.map((m) => m.content), texts)
      same(b, a)
    },

    async "an agent waits for an answer, and continues with it"(server) {
      const id = thread()
      const a = client(server, id, { agent: "tinker" })
      a.say('[run "echo hi"]')
      await a.runAgent()
      const { outcome } = last(a)
      assert.equal(outcome.type, "interrupt")
      const [interrupt] = outcome.interrupts
      assert.ok(interrupt.responseSchema.properties.option.enum.length > 0)
      const b = client(server, id, { agent: "tinker" }) // the page is loaded again while the agent waits
      await b.connectAgent({})
      assert.deepEqual(last(b).outcome, outcome)
      same(b, a)
      await b.runAgent({ resume: [{ interruptId: interrupt.id, status: "resolved", payload: { approved: true } }] })
      assert.equal(last(b).type, "RUN_FINISHED")
      assert.notEqual(last(b).outcome?.type, "interrupt")
      assert.match(b.messages.find((m) => m.role === "tool").content, /hi/)
      const c = client(server, id, { agent: "tinker" })
      await c.connectAgent({})
      same(c, b)
    },

    async "an answer can be a refusal or none, and an old answer is refused"(server, warnings) {
      for (const resume of [{ status: "resolved", payload: { approved: false } }, { status: "cancelled" }]) {
        const a = client(server, thread(), { agent: "tinker" })
        a.say('[run "echo hi"]')
        await a.runAgent()
        const { id: interruptId } = last(a).outcome.interrupts[0]
        await a.runAgent({ resume: [{ interruptId, ...resume }] })
        assert.equal(last(a).type, "RUN_FINISHED")
        assert.doesNotMatch(a.messages.find((m) => m.role === "tool")?.content ?? "", /^hi/)
      }
      const id = thread()
      const [a, b] = [client(server, id, { agent: "tinker" }), client(server, id, { agent: "tinker" })]
      a.say('[run "echo a"] [run "echo b"]')
      await a.runAgent()
      await b.connectAgent({})
      const { id: interruptId } = last(a).outcome.interrupts[0]
      const resume = [{ interruptId, status: "resolved", payload: { approved: true } }]
      await a.runAgent({ resume })
      assert.equal(last(a).outcome.type, "interrupt", "the agent asks for the second command")
      await assert.rejects(b.runAgent({ resume }), /409/)
      warnings.length = 0 // the client logs each error
      await stop(server, "tinker", id)
    },

    async "an agent may use its ids again in the next run"(server) {
      const id = thread()
      const send = (...events) => fetch(`${server.url}/agui/hello/events/${id}`, {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(events),
      }).then(async (r) => assert.equal(r.status, 200, await r.clone().text()))
      const begin = (runId, text) => ({
        type: "RUN_STARTED", threadId: id, runId,
        input: { threadId: id, runId, messages: [{ id: `u-${runId}`, role: "user", content: text }], tools: [], context: [], state: {}, forwardedProps: {} },
      })
      const work = (runId, text) => [
        { type: "TEXT_MESSAGE_START", messageId: "m1", role: "assistant" },
        { type: "TEXT_MESSAGE_CONTENT", messageId: "m1", delta: text },
        { type: "TEXT_MESSAGE_END", messageId: "m1" },
        { type: "TOOL_CALL_START", toolCallId: "c1", toolCallName: "search", parentMessageId: "m1" },
        { type: "TOOL_CALL_ARGS", toolCallId: "c1", delta: "{}" },
        { type: "TOOL_CALL_END", toolCallId: "c1" },
        { type: "TOOL_CALL_RESULT", messageId: "t1", toolCallId: "c1", content: `result of ${text}` },
        { type: "RUN_FINISHED", threadId: id, runId },
      ]
      await send(begin("1", "first"), ...work("1", "one"))
      const a = client(server, id)
      await a.connectAgent({})
      await send(begin("2", "second"))
      const second = a.connectAgent({})
      await a.until((e) => e.type === "RUN_STARTED" && e.runId === "2")
      await send(...work("2", "two"))
      await second
      assert.deepEqual(a.messages.map((m) => m.content ?? m.toolCalls[0].id), ["first", "one", "result of one", "second", "two", "result of two"])
      for (const [call, result] of [[1, 2], [4, 5]]) assert.equal(a.messages[call].toolCalls[0].id, a.messages[result].toolCallId)
      assert.equal(new Set(a.messages.map((m) => m.id)).size, 6)
      const b = client(server, id)
      await b.connectAgent({})
      same(b, a)
      await a.connectAgent({})
      same(a, b)
    },

    async "an agent may use one id for everything, and answer calls oddly"(server) {
      const id = thread()
      const send = (...events) => fetch(`${server.url}/agui/hello/events/${id}`, {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(events),
      }).then(async (r) => assert.equal(r.status, 200, await r.clone().text()))
      const messages = [{ id: "u", role: "user", content: "hello" }]
      const text = (delta) => ({ type: "TEXT_MESSAGE_CONTENT", messageId: "u", delta })
      const answer = (toolCallId, messageId, content) => ({ type: "TOOL_CALL_RESULT", toolCallId, messageId, content })
      await send({ type: "RUN_STARTED", threadId: id, runId: "1", input: { threadId: id, runId: "1", messages, tools: [], context: [], state: {}, forwardedProps: {} } })
      const a = client(server, id)
      const run = a.connectAgent({})
      await a.until((e) => e.type === "RUN_STARTED" && e.runId === "1")
      const parts = [
        [{ type: "TEXT_MESSAGE_START", messageId: "u", role: "assistant" }, text("te")],
        [{ type: "REASONING_MESSAGE_START", messageId: "u", role: "reasoning" }, { type: "REASONING_MESSAGE_CONTENT", messageId: "u", delta: "hm" }, { type: "REASONING_MESSAGE_END", messageId: "u" }],
        [{ type: "ACTIVITY_SNAPSHOT", messageId: "u", activityType: "X", content: { k: 1 } }, text("xt"), { type: "TEXT_MESSAGE_END", messageId: "u" }],
        [{ type: "ACTIVITY_DELTA", messageId: "u", activityType: "X", patch: [{ op: "replace", path: "/k", value: 2 }] }, answer("c", "t0", "too early"), answer("nobody", "u", "to nobody")],
        [{ type: "TOOL_CALL_START", toolCallId: "c", toolCallName: "search" }, { type: "TOOL_CALL_ARGS", toolCallId: "c", delta: "{}" }, { type: "TOOL_CALL_END", toolCallId: "c" }],
        [answer("c", "t1", "one"), { type: "TEXT_MESSAGE_START", messageId: "end", role: "assistant" }, answer("c", "t2", "two")],
        [{ type: "TEXT_MESSAGE_CONTENT", messageId: "end", delta: "Bye" }, { type: "TEXT_MESSAGE_END", messageId: "end" }, { type: "RUN_FINISHED", threadId: id, runId: "1" }],
      ]
      const late = []
      for (const part of parts) {
        const b = client(server, id)
        late.push([b, b.connectAgent({})])
        await b.until((e) => e.type === "RUN_STARTED")
        await send(...part)
      }
      await run
      assert.deepEqual(a.messages.map((m) => [m.role, m.role === "activity" ? m.content.k : m.content]), [
        ["user", "hello"], ["assistant", "text"], ["reasoning", "hm"], ["activity", 2], ["assistant", undefined], ["tool", "two"], ["assistant", "Bye"],
      ])
      assert.equal(new Set(a.messages.map((m) => m.id)).size, 7)
      for (const [b, connected] of late) {
        await connected
        same(b, a)
      }
      await a.connectAgent({})
      same(a, late[0][0])
    },

    async "a thread of more than 8 MiB is restored"(server) {
      const id = thread()
      const a = client(server, id)
      a.say("hello")
      const big = "0123456789abcdef".repeat(1 << 12) // 64 KiB
      await a.play([{ set: { rate: 1e6 } }, { think: `${big} x` },
        { tool: "read", args: { p: big }, result: big.repeat(40) },
        { tool: "read", args: { p: 1 }, result: big.repeat(40) },
        { tool: "read", args: { p: 2 }, result: big.repeat(40) },
        { say: "the end" }, { tool: "read", args: { p: 3 }, result: big.repeat(40) }, { think: "so" }, { say: big.repeat(3) }, { state: { n: 1 } }])
      a.say("and?")
      await a.play([{ say: "yes" }])
      const b = client(server, id)
      await b.connectAgent({})
      same(b, a)
      await b.connectAgent({})
      same(b, a)
    },
  }
}

export async function stop(server, agent, thread, body) {
  const init = { method: "POST", ...(body && { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }) }
  const answer = await fetch(`${server.url}/agui/${agent}/stop/${encodeURIComponent(thread)}`, init)
  assert.equal(answer.status, 200)
  return answer.json()
}

/** A signal lets a scenario wait for the next event, without a time. */
function signal() {
  let waiting = []
  return {
    next: () => new Promise((done) => waiting.push(done)),
    notify: () => { const list = waiting; waiting = []; for (const done of list) done() },
  }
}
