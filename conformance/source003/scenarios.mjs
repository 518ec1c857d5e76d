// These scenarios check the document on SSE sessions sentence by sentence. "line 118" in a
// comment is the line of the document that the check is of. The client is client.mjs.
import assert from "node:assert/strict"
import { once } from "node:events"
import { connect, createServer } from "node:net"

import { EventSource } from "eventsource"

import { conversation, Page, TERMINAL, todos } from "./client.mjs"

const HELLO = { steps: [{ turn: true }, { think: "hm hm" }, { say: "one two three four", rate: 100 }, { usage: { model: "m", inputTokens: 3, outputTokens: 4, costUsd: 0.5 } }] }
const SLOW = { steps: [{ turn: true }, { say: "a b c d e f g h i j k l m n o p q r s t u v w x y z", rate: 10 }] }
const PLAN = [{ content: "Read file", status: "completed" }, { content: "Process data", status: "in_progress" }, { content: "Write output", status: "pending" }]
const ENDLESS = { steps: [{ turn: true }, { plan: PLAN }, { repeat: 0, steps: [{ say: "on and on", rate: 50 }] }] }
const ECHO = { steps: [{ say: "{{task}}", rate: 1000 }] }
const SILENT = { steps: [{ sleep: 60_000 }] }
const FAILS = { steps: [{ say: "half a", rate: 50 }, { error: "the provider answered 503" }] }
const RESUME_CONTEXT = `[RESUME CONTEXT]
Previous execution was cancelled by user.

Todo state at cancellation:
  ✓ Read file [completed]
  → Process data [in_progress]
  ○ Write output [pending]

Note: Task(s) marked in_progress were interrupted and may be incomplete.
[END RESUME CONTEXT]`
const TOOLS = {
  steps: [
    { turn: true }, { say: "I look.", rate: 100 },
    { tool: "TodoWrite", args: { todos: [{ content: "Look", status: "in_progress" }, { content: "Mend", status: "pending" }] }, ms: 5, result: "ok" },
    { tool: "Read", args: { file_path: "/a.txt" }, ms: 30, result: "hello" },
    { tool: "Bash", args: { command: "false" }, ms: 5, result: "exit 1", failed: true },
    { say: "I mended it.", rate: 100 },
    { tool: "TodoWrite", args: { todos: [{ content: "Look", status: "completed" }, { content: "Mend", status: "completed" }] }, ms: 5, result: "ok" },
    { event: "CUSTOM", data: { name: "task.output_display", value: { output: "42", result_files: ["a.txt"], status: "COMPLETE" } } },
    { say: "Done.", rate: 100 },
  ],
}
/** Many messages and calls, each long enough that a connection can be cut in it. */
const LONG = { steps: [{ turn: true }, ...[1, 2, 3, 4].flatMap((n) => [
  { say: `part ${n} of a long long text`, rate: 20 }, { tool: "Read", args: { file_path: `/${n}.txt` }, ms: 150, result: `file ${n}` }, { sleep: 100 },
])] }
/** One message of the log with a text and three calls. */
const WHOLE = { steps: [{ sleep: 300 }, { event: "message.added", data: { message: {
  id: "w", role: "assistant", content: "I read.", toolCalls: ["x", "y", "z"].map((id) => ({ id, type: "function", function: { name: "Read", arguments: `{"file_path":"/${id}"}` } })),
} } }, ...["x", "y", "z"].map((id) => ({ event: "TOOL_CALL_RESULT", data: { messageId: `r${id}`, toolCallId: id, content: id, role: "tool" } })), { say: "Done.", rate: 50 }] }

const types = (events) => events.map((e) => e.type)
const finished = (events) => events.filter((e) => !(e.type === "message" && e.data.is_partial))
const has = (event, ...members) => members.forEach((m) => assert.ok(m in event.data, `${event.type} has no ${m}`))
const one = (events, type) => {
  const found = events.filter((e) => e.type === type)
  assert.equal(found.length, 1, `there are ${found.length} of ${type} in ${types(events)}`)
  return found[0]
}

/** A page that has given a task and has all of its events. */
async function played(world, task, config) {
  const page = new Page(world.base)
  await page.send(task, config)
  await page.done()
  return page
}

/** Checks the form of the events that a page has, and that none is there twice. */
function wellFormed(events) {
  let before = -1
  for (const e of events) {
    assert.deepEqual(Object.keys(e).sort(), ["data", "sequence", "timestamp", "type"]) // lines 182 to 199
    assert.match(e.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) // line 200
    assert.ok(Number.isSafeInteger(e.sequence), `sequence ${e.sequence}`) // line 201
    assert.equal(parseInt(e.sequence), e.sequence)
    assert.ok(e.sequence > before, `sequence ${e.sequence} ${e.type} after ${before}`) // line 201
    before = e.sequence
  }
  return events
}

/** A way to the server that can be cut. */
async function throughProxy(world) {
  const target = new URL(world.base)
  const open = new Set()
  const proxy = createServer((here) => {
    const there = connect(target.port, target.hostname)
    for (const [a, b] of [[here, there], [there, here]]) {
      open.add(a)
      a.on("error", () => {}).on("close", () => { open.delete(a); b.destroy() })
      a.pipe(b)
    }
  })
  await once(proxy.listen(0, "127.0.0.1"), "listening")
  return {
    base: `http://127.0.0.1:${proxy.address().port}/sse`,
    cut: () => open.forEach((s) => s.destroy()),
    close: () => { open.forEach((s) => s.destroy()); proxy.close() },
  }
}

/** The frames of a stream, without a library. */
async function rawStream(world, id, until) {
  const abort = new AbortController()
  const response = await fetch(`${world.base}/api/v1/sessions/${id}/events?token=x`, { signal: abort.signal })
  let text = ""
  const decoder = new TextDecoder()
  for await (const chunk of response.body) {
    text += decoder.decode(chunk, { stream: true })
    if (until?.(text)) break
  }
  abort.abort()
  return { headers: response.headers, text }
}

export const scripted = {
  async "a task runs to completion"(world) {
    const page = new Page(world.base)
    const answer = await page.send("Count", HELLO) // line 34
    assert.ok(answer.session_id) // line 40
    assert.equal(answer.status, "running") // line 40
    await page.done() // line 41
    const events = wellFormed(page.events)
    assert.deepEqual(types(finished(events)), ["user_message", "agent_start", "thinking", "message", "conversation_turn", "agent_complete"]) // line 523
    assert.ok(events.some((e) => e.type === "message" && e.data.is_partial), "the text was streamed in parts") // lines 103 and 110
    const [user, begin, thinking, message, turn, end] = finished(events)
    assert.equal(user.data.text, "Count") // lines 37 and 148
    assert.deepEqual(begin.data, { session_id: page.session, model: null, tools: [], skills: [], task: "Count" }) // line 147
    assert.equal(thinking.data.text.trim(), "hm hm") // line 149
    assert.equal(message.data.text, "one two three four") // line 150
    assert.equal(message.data.full_text, "one two three four") // line 104
    assert.equal(message.data.is_partial, false) // line 104
    assert.equal(events.filter((e) => e.data.is_partial).map((e) => e.data.text).join(""), message.data.full_text) // line 150
    has(turn, "turn_number", "prompt_preview", "response_preview", "duration_ms", "tools_used") // line 164
    has(end, "status", "num_turns", "duration_ms", "total_cost_usd", "usage", "model") // line 154
    assert.equal(end.data.status, "COMPLETE") // line 276
    assert.equal(end.data.total_cost_usd, 0.5)
    assert.equal(end.data.usage.input_tokens, 3)
    const session = await page.show() // line 489
    assert.equal(session.id, page.session) // line 493
    assert.equal(session.status, "complete") // line 357
    assert.equal(session.resumable, undefined) // line 503
  },

  async "the stream has the headers and frames of the document"(world) {
    const page = new Page(world.base)
    await page.send("Count", SLOW)
    const { headers, text } = await rawStream(world, page.session)
    page.leave()
    assert.equal(headers.get("content-type"), "text/event-stream; charset=utf-8") // line 512
    assert.equal(headers.get("cache-control"), "no-cache, no-transform") // line 513
    assert.equal(headers.get("connection"), "keep-alive") // line 514
    assert.equal(headers.get("x-accel-buffering"), "no") // line 515
    const frames = text.split("\n\n").filter((f) => f && !f.startsWith(":") && !f.startsWith("retry:")) // line 213
    for (const frame of frames) {
      const [, id, data] = frame.match(/^id: (\d+)\ndata: (.*)$/) // line 208
      assert.equal(JSON.parse(data).sequence, Number(id)) // line 213
    }
    assert.equal(JSON.parse(frames.at(-1).split("data: ")[1]).type, "agent_complete") // lines 170 and 247: the server ends it
  },

  async "a silent stream has heartbeats"(world) {
    const page = new Page(world.base)
    await page.send("Wait", SILENT)
    const { text } = await rawStream(world, page.session, (t) => t.includes(": heartbeat\n\n")) // line 253
    assert.ok(text.includes(": heartbeat\n\n")) // line 240
    await page.cancel()
    page.leave()
  },

  async "tools, todos and the output are shown"(world) {
    const page = await played(world, "Mend it", TOOLS)
    const events = wellFormed(page.events)
    assert.deepEqual(todos(events), [{ content: "Look", status: "completed" }, { content: "Mend", status: "completed" }]) // lines 116 and 126
    const starts = events.filter((e) => e.type === "tool_start")
    const completes = events.filter((e) => e.type === "tool_complete")
    starts.forEach((e) => has(e, "tool_name", "tool_input", "tool_id")) // line 151
    completes.forEach((e) => has(e, "tool_name", "tool_id", "result", "duration_ms", "is_error")) // line 152
    assert.deepEqual(starts.map((e) => e.data.tool_id), completes.map((e) => e.data.tool_id)) // line 119
    const [, read, bash] = completes
    assert.equal(read.data.result, "hello") // line 152
    assert.ok(read.data.duration_ms >= 20) // line 152
    assert.deepEqual([read.data.is_error, bash.data.is_error], [false, true]) // line 152
    assert.deepEqual(starts[1].data.tool_input, { file_path: "/a.txt" }) // line 188
    has(one(events, "output_display"), "output", "error", "comments", "result_files", "status") // line 153
    const items = conversation(events)
    assert.deepEqual(items.map((item) => item.type), ["user", "agent_message", "agent_message", "output", "agent_message"]) // line 336
    assert.deepEqual(items[2].toolCalls.map((t) => t.name), ["TodoWrite", "Read", "Bash"]) // lines 345 and 346
    assert.deepEqual(items[3], { type: "output", output: "42", files: ["a.txt"], status: "COMPLETE" }) // line 347
    assert.equal(items.at(-1).status, "COMPLETE") // line 128
  },

  async "what an agent reports of itself is passed on"(world) {
    const custom = (type, value) => ({ event: "CUSTOM", data: { name: `task.${type}`, value } })
    const page = await played(world, "Go", { steps: [
      custom("profile_switch", { profile_type: "mode", profile_name: "plan", tools: ["Read"] }), custom("hook_triggered", { hook_event: "Stop", decision: "allow" }),
      custom("session_disconnect", { total_turns: 3, total_duration_ms: 7 }),
    ] })
    has(one(page.events, "profile_switch"), "profile_type", "profile_name", "tools") // line 162
    has(one(page.events, "hook_triggered"), "hook_event", "tool_name", "decision", "message") // line 163
    has(one(page.events, "session_disconnect"), "session_id", "total_turns", "total_duration_ms") // line 166
  },

  async "a plan is one call of TodoWrite, which ends"(world) {
    const page = await played(world, "Go", { steps: [{ turn: true }, { plan: PLAN }, { say: "Done.", rate: 100 }] })
    const start = one(page.events, "tool_start")
    const end = one(page.events, "tool_complete") // line 119
    assert.deepEqual([start.data.tool_name, end.data.tool_name, end.data.tool_id], ["TodoWrite", "TodoWrite", start.data.tool_id]) // line 119
    assert.deepEqual(todos(page.events), PLAN) // line 116
  },

  async "a whole message with several calls loses nothing"(world) {
    const page = await played(world, "Read", WHOLE)
    const events = wellFormed(page.events) // line 201
    assert.equal(events.filter((e) => e.type === "tool_start").length, 3)
    const numbers = events.map((e) => parseInt(e.sequence))
    assert.equal(new Set(numbers).size, numbers.length) // line 201
    assert.deepEqual(await page.history(), finished(events)) // line 105: the numbers are the same for ever
  },

  async "a running task is cancelled and resumed"(world) {
    const page = new Page(world.base)
    await page.send("Go", ENDLESS)
    await page.when((e) => e.type === "message")
    const ended = page.done()
    assert.equal((await page.cancel()).status, 200) // lines 136 and 377
    await ended
    wellFormed(page.events)
    assert.deepEqual(page.events.at(-1).data, { message: "Task was cancelled", resumable: true }) // lines 156 and 381, 402 to 410
    const session = await page.show()
    assert.deepEqual([session.status, session.resumable], ["cancelled", true]) // lines 382 and 501
    const before = page.events.length
    const said = conversation(page.events).filter((i) => i.type === "agent_message").map((i) => i.content)
    await page.send("Go on", ECHO) // lines 44 to 50, 414, 482
    await page.done()
    wellFormed(page.events)
    const next = page.events.slice(before)
    assert.deepEqual(next[0].data, { text: "Go on" }) // lines 50 and 485: new events
    assert.equal(next.at(-1).type, "agent_complete")
    assert.equal(one(next, "agent_start").data.task, "Go on") // line 147
    assert.equal(next.at(-2).data.full_text, `${RESUME_CONTEXT}\n\nGo on`) // lines 48 and 417 to 430
    const all = conversation(await page.history()).filter((i) => i.type === "agent_message").map((i) => i.content)
    assert.deepEqual(all.slice(0, said.length), said)
    assert.equal((await page.show()).status, "complete")
  },

  async "a task is resumable exactly if agent_start was sent"(world) {
    for (const config of [SILENT, { steps: [{ state: {} }, { sleep: 60_000 }] }, { steps: [{ turn: true }, { tool: "Bash", args: {}, ms: 60_000, result: "" }] }]) {
      const page = new Page(world.base)
      await page.send("Go", config)
      const ended = page.done()
      await page.when((e) => config === SILENT || e.type === "agent_start")
      const { body } = await page.cancel()
      await ended
      const started = page.events.some((e) => e.type === "agent_start")
      assert.equal(started, config !== SILENT)
      assert.equal(page.events.at(-1).data.resumable, started) // lines 394 to 400
      assert.equal(body.resumable, started)
      const session = await page.show()
      assert.deepEqual([session.status, session.resumable], ["cancelled", started]) // lines 501 and 502
      const answer = await page.call("POST", `/sessions/${page.session}/task`, { task: "Go on", config: HELLO })
      assert.equal(answer.status, started ? 202 : 400) // line 47
      if (started) continue
      const cancelled = page.session
      await page.send("Go on", HELLO) // line 415
      assert.notEqual(page.session, cancelled)
      await page.done()
    }
  },

  async "a task fails"(world) {
    const page = await played(world, "Fail", FAILS)
    assert.deepEqual(wellFormed(page.events).at(-1).data, { message: "the provider answered 503", error_type: "agent" }) // lines 135 and 155
    assert.deepEqual([page.status, page.error], ["failed", "the provider answered 503"]) // line 324
    assert.equal((await page.show()).status, "failed") // line 263
    assert.equal((await page.show()).resumable, undefined) // line 503
  },

  async "a task fails before it says a word"(world) {
    const page = await played(world, "Fail", { steps: [{ error: "no" }] })
    assert.equal(page.events.at(-1).type, "error") // lines 269 to 272
  },

  async "a wrong config is refused, and starts nothing"(world) {
    const page = new Page(world.base)
    const answer = await page.call("POST", "/sessions/run", { task: "Go", config: { temperatur: 1 } })
    assert.equal(answer.status, 400, JSON.stringify(answer.body))
  },

  async "a reload shows the same conversation"(world) {
    const page = await played(world, "Mend it", TOOLS)
    const again = new Page(world.base)
    await again.select(page.session) // lines 466 to 471
    assert.deepEqual(again.events, finished(page.events)) // lines 99 to 111, 474
    assert.deepEqual(conversation(again.events), conversation(page.events)) // lines 468 and 581
  },

  async "a reload of a long session shows its end"(world) {
    const page = await played(world, "Go", { instant: true, steps: [...Array.from({ length: 5500 }, (_, n) => ({ tool: "Read", args: { n }, result: "r" })), { say: "The answer." }] })
    const again = new Page(world.base)
    await again.select(page.session) // lines 467 and 472: fetched once
    assert.deepEqual(again.events, finished(page.events))
    assert.equal(again.events.at(-1).type, "agent_complete")
  },

  async "a reload during a task continues where the history ends"(world) {
    for (const config of [SLOW, LONG]) {
      const page = new Page(world.base)
      await page.send("Count", config)
      for (let n = 0; n < 12; n++) await page.when(() => true)
      await page.select(page.session) // line 581
      await page.done()
      wellFormed(page.events) // line 475: none is there twice
      assert.deepEqual(finished(page.events), await page.history())
    }
  },

  async "a second page shows a running task"(world) {
    const page = new Page(world.base), other = new Page(world.base)
    await page.send("Count", SLOW)
    for (let n = 0; n < 8; n++) await page.when(() => true)
    await other.select(page.session) // line 475
    await Promise.all([page.done(), other.done()])
    for (const p of [page, other]) assert.deepEqual(finished(wellFormed(p.events)), await p.history()) // lines 86 and 94
    assert.equal(conversation(other.events).at(-1).content, SLOW.steps[1].say)
  },

  async "a lost connection doubles nothing and loses nothing"(world) {
    await Promise.all([5, 8, 11, 14, 17, 20].map(async (cut) => {
      const proxy = await throughProxy(world)
      const page = new Page(proxy.base)
      await page.send("Count", LONG)
      for (let n = 0; n < cut; n++) await page.when(() => true)
      const ended = page.done()
      proxy.cut()
      await ended
      assert.equal(page.reconnects, 1) // lines 295 to 299
      wellFormed(page.events)
      assert.ok(page.seenAgain >= cut, `${page.seenAgain} events came again`) // a page that only appends shows them twice
      assert.deepEqual(finished(page.events), await page.history(), `cut after ${cut}`)
      proxy.close()
    }))
  },

  async "a connection that is lost for good ends after five attempts"(world) {
    const proxy = await throughProxy(world)
    const page = new Page(proxy.base)
    await page.send("Count", ENDLESS)
    await page.when((e) => e.type === "message")
    proxy.close()
    await assert.rejects(page.done(), /the connection was lost/) // lines 296 and 438
    assert.equal(page.reconnects, 5) // line 296
    page.baseUrl = world.base
    await page.cancel()
  },

  async "the server is killed during a task"(world) {
    const page = new Page(world.base)
    await page.send("Count", LONG)
    for (let n = 0; n < 14; n++) await page.when(() => true)
    const ended = page.done()
    await world.restart()
    await ended
    wellFormed(page.events) // none is there twice
    assert.equal(page.events.at(-1).type, "error") // lines 135 and 261
    assert.deepEqual(finished(page.events), await page.history())
    assert.equal((await page.show()).status, "failed") // lines 263 and 494
    assert.equal((await page.show()).resumable, undefined) // line 503
    await page.send("Go on", ECHO) // line 503: always continuable
    await page.done()
    assert.equal(wellFormed(page.events).at(-1).type, "agent_complete")
  },

  async "a session ends, the server is killed, and the next task is shown"(world) {
    const page = await played(world, "Count", HELLO)
    await world.restart()
    await page.send("Again", HELLO)
    await page.done()
    wellFormed(page.events)
    assert.deepEqual(finished(page.events), await page.history())
  },

  async "an EventSource reconnects by itself, and stops by itself"(world) {
    const proxy = await throughProxy(world)
    const page = new Page(world.base)
    page.session = (await page.call("POST", "/sessions/run", { task: "Count", config: SLOW })).body.session_id
    const source = new EventSource(`${proxy.base}/api/v1/sessions/${page.session}/events?token=x`) // line 57
    const events = []
    source.onmessage = (message) => { if (events.push(JSON.parse(message.data)) === 8) proxy.cut() }
    await new Promise((stopped) => { source.onerror = () => source.readyState === EventSource.CLOSED && stopped() })
    wellFormed(events)
    assert.equal(events[0].type, "user_message")
    assert.equal(events.at(-1).type, "agent_complete")
    assert.deepEqual(finished(events), await page.history())
    proxy.close()
  },

  async "two clients see the same"(world) {
    const page = new Page(world.base)
    await page.send("Count", SLOW)
    const raw = await rawStream(world, page.session) // lines 86 and 94
    const events = raw.text.split("\n").filter((l) => l.startsWith("data: ")).map((l) => JSON.parse(l.slice(6)))
    if (!page.events.some((e) => TERMINAL.includes(e.type))) await page.done()
    assert.deepEqual(events, page.events)
  },

  async "the page changes the session and comes back"(world) {
    const page = new Page(world.base), other = new Page(world.base)
    await page.send("One", SLOW)
    await page.when((e) => e.type === "message")
    const first = page.session
    await other.send("Two", SLOW)
    await page.select(other.session) // line 439
    await page.when((e) => e.type === "message")
    assert.ok(page.events.every((e) => e.type !== "user_message" || e.data.text === "Two"))
    await page.select(first)
    if (page.status === "running") await page.done()
    assert.deepEqual(finished(wellFormed(page.events)), await page.history()) // lines 439 and 475
    other.leave()
  },

  async "a task ends before the page connects"(world) {
    const page = new Page(world.base)
    const { body } = await page.call("POST", "/sessions/run", { task: "Count", config: { ...HELLO, instant: true } })
    page.session = body.session_id
    while ((await page.show()).status === "running") await new Promise((r) => setTimeout(r, 20))
    const { text } = await rawStream(world, page.session)
    const events = text.split("\n").filter((l) => l.startsWith("data: ")).map((l) => JSON.parse(l.slice(6)))
    assert.deepEqual(finished(wellFormed(events)), await page.history()) // line 65
  },
}

/** Scenarios with a program that speaks as Claude Code does. */
export const withClaude = {
  async "agent_start, turns and the plan of Claude Code"(world) {
    const page = await played(world, "Read it")
    const events = wellFormed(page.events)
    const begin = one(events, "agent_start").data
    assert.deepEqual(begin, { session_id: page.session, model: "claude-x", tools: ["Read", "TodoWrite"], skills: ["pdf"], task: "Read it" }) // line 147
    assert.deepEqual(types(events).slice(0, 2), ["user_message", "agent_start"]) // line 532
    assert.equal(one(events, "session_connect").data.session_id, page.session) // line 165
    assert.deepEqual(one(events, "profile_switch").data.tools, ["Read", "TodoWrite"]) // line 162
    const turns = events.filter((e) => e.type === "conversation_turn").map((e) => e.data)
    assert.deepEqual(turns.map((t) => t.turn_number), [1, 2]) // line 164
    assert.deepEqual(turns.map((t) => t.tools_used), [["TodoWrite", "Read"], []]) // line 164
    assert.deepEqual(turns.map((t) => t.response_preview), ["I plan.", "It says hello."]) // line 164
    const calls = events.filter((e) => e.type === "tool_start").map((e) => e.data.tool_name)
    assert.deepEqual(calls, ["TodoWrite", "Read"]) // line 119
    assert.deepEqual(todos(events).map((t) => t.status), ["completed", "in_progress", "pending", "cancelled"]) // line 127
    const end = events.at(-1).data
    assert.deepEqual([end.status, end.num_turns, end.model, end.total_cost_usd], ["COMPLETE", 2, "claude-x", 0.25]) // line 154
  },
}

/** Scenarios with a model. */
export const withModel = {
  async "the plan of a model is one call of TodoWrite"(world) {
    const page = await played(world, "Plan it")
    const events = wellFormed(page.events)
    const start = one(events, "tool_start").data, end = one(events, "tool_complete").data // line 119
    assert.deepEqual([start.tool_name, end.tool_name, end.tool_id, end.is_error], ["TodoWrite", "TodoWrite", start.tool_id, false])
    assert.deepEqual(todos(events).map((t) => t.status), ["completed", "in_progress", "pending", "cancelled"]) // line 127
    const begin = one(events, "agent_start").data
    assert.equal(begin.model, "stub") // line 147
    assert.ok(begin.tools.length > 0) // line 147
    assert.deepEqual(events.filter((e) => e.type === "conversation_turn").map((e) => e.data.turn_number), [1, 2]) // line 164
  },
}
