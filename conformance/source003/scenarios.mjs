// These scenarios are the typical uses of a client of the task protocol.
import assert from "node:assert/strict"

import { EventSource } from "eventsource"

import { connectSSE, conversation, TERMINAL, todos } from "./client.mjs"

const HELLO = { steps: [{ turn: true }, { think: "hm hm" }, { say: "one two three four", rate: 100 }, { usage: { model: "m", inputTokens: 3, outputTokens: 4, costUsd: 0.5 } }] }
const SLOW = { steps: [{ turn: true }, { say: "a b c d e f g h i j k l m n o p q r s t u v w x y z", rate: 10 }] }
const ENDLESS = { steps: [{ turn: true }, { plan: [{ content: "Read file", status: "completed" }, { content: "Process data", status: "in_progress" }, { content: "Write output", status: "pending" }] }, { repeat: 0, steps: [{ say: "on and on", rate: 50 }] }] }
const ECHO = { steps: [{ say: "{{task}}", rate: 1000 }] }
const RESUMED = `[RESUME CONTEXT]
Previous execution was cancelled by user.

Todo state at cancellation:
  ✓ Read file [completed]
  → Process data [in_progress]
  ○ Write output [pending]

Note: Task(s) marked in_progress were interrupted and may be incomplete.
[END RESUME CONTEXT]

Go on`
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

/** Follows a session; resolves with all events after a terminal event. */
function follow(base, id, { after, fetch, until = (e) => TERMINAL.includes(e.type), onEvent } = {}) {
  const events = []
  let close
  const done = new Promise((resolve, reject) => {
    close = connectSSE(base, id, "secret", (event) => {
      events.push(event)
      onEvent?.(event)
      if (until(event)) resolve(events)
    }, reject, (attempt) => { events.reconnects = attempt }, { after, fetch })
  })
  return { events, done, close }
}

const start = async (world, task, config) => {
  const { status, body } = await world.api.run(task, config)
  assert.equal(status, 202)
  assert.equal(body.status, "running")
  return body.session_id
}
const types = (events) => events.map((e) => e.type)
const finished = (events) => events.filter((e) => !(e.type === "message" && e.data.is_partial))
const has = (event, ...members) => members.forEach((m) => assert.ok(m in event.data, `${event.type} has no ${m}`))

/** Checks that the sequence numbers grow, and that the parts of a message are its text. */
function wellFormed(events) {
  let before = -1, text = ""
  for (const e of events) {
    assert.deepEqual(Object.keys(e).sort(), ["data", "sequence", "timestamp", "type"])
    assert.ok(e.sequence > before, `sequence ${e.sequence} after ${before}`)
    assert.match(e.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    before = e.sequence
    if (e.type !== "message") continue
    if (e.data.is_partial) { text += e.data.text; continue }
    assert.equal(e.data.full_text, text)
    text = ""
  }
  return events
}

/** Returns a fetch whose first connection breaks after a number of bytes. */
const dropping = (limit) => {
  let left = limit
  return async (url, init) => {
    const response = await fetch(url, init)
    if (left === undefined) return response
    let budget = left
    left = undefined // only the first connection breaks
    const cut = new TransformStream({
      transform(chunk, controller) {
        const part = chunk.subarray(0, budget)
        budget -= part.length
        if (part.length) controller.enqueue(part)
        if (budget <= 0) controller.error(new Error("connection reset"))
      },
    })
    const body = response.body.pipeThrough(cut)
    return { ok: response.ok, status: response.status, headers: response.headers, url: response.url, redirected: false, body }
  }
}

export const scenarios = {
  async "a task runs to completion"(world) {
    const id = await start(world, "Count", HELLO)
    const events = wellFormed(await follow(world.base, id).done)
    assert.deepEqual(types(finished(events)), ["user_message", "agent_start", "thinking", "message", "conversation_turn", "agent_complete"])
    assert.ok(events.some((e) => e.type === "message" && e.data.is_partial), "the text was streamed in parts")
    const [user, begin, thinking, message, turn, end] = finished(events)
    assert.equal(user.data.text, "Count")
    assert.deepEqual(begin.data, { session_id: id, model: null, tools: [], skills: [], task: "Count" })
    assert.equal(thinking.data.text.trim(), "hm hm")
    assert.equal(message.data.full_text, "one two three four")
    has(turn, "turn_number", "prompt_preview", "response_preview", "duration_ms", "tools_used")
    has(end, "status", "num_turns", "duration_ms", "total_cost_usd", "usage", "model")
    assert.equal(end.data.status, "COMPLETE")
    assert.equal(end.data.total_cost_usd, 0.5)
    assert.equal(end.data.usage.input_tokens, 3)
    assert.equal((await world.api.session(id)).status, "complete")
  },

  async "the headers are those of the protocol"(world) {
    const id = await start(world, "Count", SLOW)
    const abort = new AbortController()
    const { headers } = await fetch(`${world.base}/api/v1/sessions/${id}/events?token=x`, { headers: { Accept: "text/event-stream" }, signal: abort.signal })
    assert.equal(headers.get("content-type"), "text/event-stream; charset=utf-8")
    assert.equal(headers.get("cache-control"), "no-cache, no-transform")
    assert.equal(headers.get("connection"), "keep-alive")
    assert.equal(headers.get("x-accel-buffering"), "no")
    abort.abort()
  },

  async "tools, todos and the output are shown"(world) {
    const id = await start(world, "Mend it", TOOLS)
    const events = wellFormed(await follow(world.base, id).done)
    assert.deepEqual(todos(events), [{ content: "Look", status: "completed" }, { content: "Mend", status: "completed" }])
    const starts = events.filter((e) => e.type === "tool_start")
    const completes = events.filter((e) => e.type === "tool_complete")
    assert.deepEqual(starts.map((e) => e.data.tool_id), completes.map((e) => e.data.tool_id))
    const [, read, bash] = completes
    assert.equal(read.data.result, "hello")
    assert.ok(read.data.duration_ms >= 20)
    assert.deepEqual([read.data.is_error, bash.data.is_error], [false, true])
    assert.deepEqual(starts[1].data.tool_input, { file_path: "/a.txt" })
    const items = conversation(events)
    assert.deepEqual(items.map((item) => item.type), ["user", "agent_message", "agent_message", "output", "agent_message"])
    assert.deepEqual(items[2].toolCalls.map((t) => t.name), ["TodoWrite", "Read", "Bash"])
    assert.deepEqual(items[3], { type: "output", output: "42", files: ["a.txt"], status: "COMPLETE" })
  },

  async "a plan without a tool is a todo list, too"(world) {
    const id = await start(world, "Go", ENDLESS)
    const { events, done } = follow(world.base, id, { until: (e) => e.type === "tool_start" })
    await done
    assert.deepEqual(todos(events).map((t) => t.status), ["completed", "in_progress", "pending"])
    await world.api.cancel(id)
  },

  async "a running task is cancelled and resumed"(world) {
    const id = await start(world, "Go", ENDLESS)
    let cancelling
    const events = wellFormed(await follow(world.base, id, {
      onEvent: (e) => { if (e.type === "message") cancelling ??= world.api.cancel(id) },
    }).done)
    assert.equal((await cancelling).status, 200)
    assert.deepEqual(events.at(-1).data, { message: "Task was cancelled", resumable: true })
    const session = await world.api.session(id)
    assert.deepEqual([session.status, session.resumable], ["cancelled", true])
    // The next task tells the agent how the cancelled one ended.
    const said = conversation(events).filter((i) => i.type === "agent_message").map((i) => i.content)
    assert.equal((await world.api.task(id, "Go on", ECHO)).status, 202)
    const next = wellFormed(await follow(world.base, id).done)
    assert.deepEqual(next[0].data, { text: "Go on" })
    assert.equal(next.at(-1).type, "agent_complete")
    assert.equal(next[1].data.task, RESUMED)
    assert.equal(next.at(-2).data.full_text, RESUMED, "the agent was told, too")
    assert.ok(next[0].sequence > events.at(-1).sequence, "it does not hear of the cancelled task again")
    const all = conversation(await world.api.history(id)).filter((i) => i.type === "agent_message").map((i) => i.content)
    assert.deepEqual(all.slice(0, said.length), said)
    assert.equal(all.at(-1), RESUMED)
  },

  async "a task that is cancelled before the agent's first text cannot be resumed"(world) {
    const id = await start(world, "Go", { steps: [{ sleep: 60_000 }] })
    const { body } = await world.api.cancel(id)
    const events = await follow(world.base, id).done
    assert.equal(events.at(-1).type, "cancelled")
    assert.equal(events.at(-1).data.resumable, body.resumable)
    assert.equal(body.resumable, false)
    assert.equal((await world.api.session(id)).resumable, false)
    assert.equal((await world.api.task(id, "Go on", HELLO)).status, 400)
  },

  async "a task fails"(world) {
    const id = await start(world, "Fail", { steps: [{ say: "half a", rate: 50 }, { error: "the provider answered 503" }] })
    const events = wellFormed(await follow(world.base, id).done)
    assert.deepEqual(events.at(-1).data, { message: "the provider answered 503", error_type: "agent" })
    assert.equal((await world.api.session(id)).status, "failed")
  },

  async "a reload shows the same conversation"(world) {
    const id = await start(world, "Mend it", TOOLS)
    const events = await follow(world.base, id).done
    const history = await world.api.history(id)
    assert.deepEqual(history, finished(events))
    assert.deepEqual(conversation(history), conversation(events))
  },

  async "a reload during a task continues where the history ends"(world) {
    const id = await start(world, "Count", SLOW)
    const first = follow(world.base, id, { until: (e) => e.type === "message" })
    await first.done
    first.close()
    const history = await world.api.history(id)
    const live = await follow(world.base, id, { after: history.at(-1).sequence }).done
    wellFormed([...history, ...live])
    assert.equal(conversation([...history, ...live]).at(-1).content, SLOW.steps[1].say)
  },

  async "a lost connection loses no events"(world) {
    for (const bytes of [700, 1501]) {
      const id = await start(world, "Count", SLOW)
      const { events, done } = follow(world.base, id, { fetch: dropping(bytes) })
      wellFormed(await done)
      assert.equal(events.reconnects, 1)
      const whole = await follow(world.base, id).done
      assert.deepEqual([...events], [...whole])
    }
  },

  async "an EventSource reconnects by itself, and stops by itself"(world) {
    const id = await start(world, "Count", SLOW)
    const source = new EventSource(`${world.base}/api/v1/sessions/${id}/events`, { fetch: dropping(900) })
    const events = []
    source.onmessage = (message) => events.push(JSON.parse(message.data))
    await new Promise((stopped) => { source.onerror = () => source.readyState === EventSource.CLOSED && stopped() })
    wellFormed(events)
    assert.equal(events[0].type, "user_message")
    assert.equal(events.at(-1).type, "agent_complete")
  },

  async "two clients see the same"(world) {
    const id = await start(world, "Count", SLOW)
    const [a, b] = await Promise.all([follow(world.base, id).done, follow(world.base, id).done])
    assert.deepEqual(a, b)
  },

  async "a client changes the session"(world) {
    const [one, two] = [await start(world, "One", SLOW), await start(world, "Two", SLOW)]
    const first = follow(world.base, one, { until: (e) => e.type === "message" })
    await first.done
    first.close()
    const heard = first.events.length
    const second = wellFormed(await follow(world.base, two).done)
    assert.equal(second[1].data.session_id, two)
    assert.equal(first.events.length, heard, "a closed stream says no more")
    const back = wellFormed(await follow(world.base, one).done)
    assert.equal(back.at(-1).type, "agent_complete")
  },

  async "a task ends before a client connects"(world) {
    const id = await start(world, "Count", { ...HELLO, instant: true })
    while ((await world.api.session(id)).status === "running") await new Promise((r) => setTimeout(r, 20))
    const events = wellFormed(await follow(world.base, id).done)
    assert.deepEqual(finished(events), await world.api.history(id))
  },

  async "the server is killed during a task"(world) {
    const id = await start(world, "Count", SLOW)
    let restarting
    const { events, done } = follow(world.base, id, {
      onEvent: (e) => { if (e.type === "message") restarting ??= world.restart() },
    })
    await done
    await restarting
    wellFormed(events)
    assert.ok(events.reconnects >= 1)
    assert.equal(events.at(-1).type, "error")
    assert.equal(events.at(-1).data.error_type, "interrupted_by_restart")
    assert.deepEqual(await world.api.history(id), finished(events))
  },
}
