// These scenarios are the protocol's own checklist, and what its design promises beyond that.
import assert from "node:assert/strict"

import { Backend, Page } from "./client.mjs"

const WORDS = Array.from({ length: 200 }, (_, i) => ` word${i}`)

/** Plays the example of the protocol's description: a thought, a tool, and a text. */
async function work(backend, { text = ["Based", " on", " the data"], id = "abc-123" } = {}) {
  await backend.thinking("Analyzing CVE data…")
  await backend.toolStart("search_cve", { id: 7 })
  await backend.toolEnd("search_cve", { found: 2 })
  await backend.start(id)
  for (const delta of text) await backend.say(id, delta)
  await backend.end(id)
  return text.join("")
}

const task = (id, prompt, output) => `<serviceTask id="${id}" tapedeck:agent="hello" tapedeck:prompt="${prompt}" tapedeck:output="${output}"/>`
const flow = (from, to) => `<sequenceFlow id="${from}_${to}" sourceRef="${from}" targetRef="${to}"/>`

/** A workflow of the server: two tasks at once, then a person decides, then the last task. */
const WORKFLOW = `<?xml version="1.0"?>
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:tapedeck="https://tapedeck.dev/bpmn" targetNamespace="t">
<process id="triage" isExecutable="true">
<startEvent id="start"/><parallelGateway id="fork"/><parallelGateway id="join"/><endEvent id="end"/>
${task("element_1", "Look at {{ cve }}", "facts")}${task("element_2", "Find a patch of {{ cve }}", "patch")}${task("element_4", "{{ decision }} it", "done")}
<userTask id="element_3" name="What now?"><extensionElements><tapedeck:form><tapedeck:field id="decision" required="true"/></tapedeck:form></extensionElements></userTask>
${[["start", "fork"], ["fork", "element_1"], ["fork", "element_2"], ["element_1", "join"], ["element_2", "join"], ["join", "element_3"], ["element_3", "element_4"], ["element_4", "end"]].map(([from, to]) => flow(from, to)).join("")}
</process>
</definitions>`

const ended = (elementId) => (m) => m.type === "text.message.end" && m.elementId === elementId
const shown = (panel) => ({ messages: panel.messages.map(({ content, status }) => [content, status]), thinking: panel.thinking, tools: panel.tools })
const TOOLS = [{ name: "search_cve", args: { id: 7 }, status: "complete", result: { found: 2 } }]

/** Opens a page of a new session, after its handshake, and a backend for an element. */
async function begin(world, elementId = "element_4") {
  const url = await world.session()
  const page = new Page(url)
  await page.socket.open
  return { url, page, backend: new Backend(url, elementId) }
}

export const scenarios = {
  async "live streaming works"(world) {
    const { page, backend } = await begin(world)
    const done = page.next(ended("element_4"))
    const text = await work(backend)
    await done
    assert.deepEqual(page.heard.map((m) => m.type), [
      "task.thinking", "task.tool.start", "task.tool.end",
      "text.message.start", "text.message.content", "text.message.content", "text.message.content", "text.message.end",
    ])
    assert.deepEqual(page.heard.filter((m) => m.delta).map((m) => [m.delta, m.content]), [["Based", "Based"], [" on", "Based on"], [" the data", text]])
    for (const m of page.heard) {
      assert.equal(m.elementId, "element_4")
      assert.equal(m.threadId, "thread_element_4")
      assert.ok(!Number.isNaN(Date.parse(m.timestamp)))
    }
    assert.deepEqual(shown(page.panel("element_4")), { messages: [[text, "complete"]], thinking: ["Analyzing CVE data…"], tools: TOOLS })
  },

  async "two hundred pieces are two hundred messages"(world) {
    const { url, page, backend } = await begin(world)
    const done = page.next(ended("element_4"))
    const text = await work(backend, { text: WORDS })
    await done
    const [message] = page.panel("element_4").messages
    assert.equal(page.heard.filter((m) => m.type === "text.message.content").length, WORDS.length)
    assert.deepEqual([message.typed, message.content], [text, text])
    const later = new Page(url)
    assert.equal((await later.open("element_4")).messages[0].content, text)
    assert.equal(later.heard.length, 1, "a replay is one message")
  },

  async "replay works after a refresh"(world) {
    const { url, page, backend } = await begin(world)
    const done = page.next(ended("element_4"))
    const text = await work(backend)
    await done
    const live = shown(page.panel("element_4"))
    await page.close()
    const refreshed = new Page(url)
    const snapshot = await refreshed.replay("element_4")
    assert.equal(snapshot.threadId, "thread_element_4")
    assert.deepEqual(Object.keys(snapshot.messages[0]).sort(), ["content", "id", "role", "status", "timestamp"])
    assert.deepEqual({ ...snapshot.messages[0], timestamp: "" }, { id: "abc-123", role: "assistant", content: text, status: "complete", timestamp: "" })
    const [tool] = snapshot.tools
    for (const member of ["name", "args", "status", "result", "startTime", "endTime"]) assert.ok(member in tool, member)
    assert.ok(Date.parse(tool.endTime) >= Date.parse(tool.startTime))
    assert.deepEqual(Object.keys(snapshot.thinking[0]).sort(), ["message", "timestamp"])
    assert.deepEqual(shown(refreshed.panel("element_4")), live)
  },

  async "history persists although nobody watches"(world) {
    const url = await world.session()
    const backend = new Backend(url, "element_4")
    const text = await work(backend)
    await backend.close() // the server handles everything that was sent before
    const panel = await new Page(url).open("element_4")
    assert.deepEqual(shown(panel), { messages: [[text, "complete"]], thinking: ["Analyzing CVE data…"], tools: TOOLS })
  },

  async "clear works, for all pages"(world) {
    const { url, page, backend } = await begin(world)
    const other = new Page(url)
    await other.socket.open
    const done = [page, other].map((p) => p.next(ended("element_4")))
    await work(backend)
    await Promise.all(done)
    const cleared = [page, other].map((p) => p.next((m) => m.type === "clear.history"))
    await page.clear()
    await Promise.all(cleared)
    for (const p of [page, other, new Page(url)]) {
      assert.deepEqual(shown(await p.open("element_4")), { messages: [], thinking: [], tools: [] })
    }
    // The workflow runs again: only the new execution is shown.
    const again = page.next(ended("element_4"))
    const text = await work(backend, { text: ["Anew"], id: "abc-124" })
    await again
    assert.deepEqual(shown(await new Page(url).open("element_4")).messages, [[text, "complete"]])
  },

  async "three tasks have independent threads"(world) {
    const { url, page } = await begin(world)
    const ids = ["element_1", "element_2", "element_3"]
    const done = ids.map((id) => page.next(ended(id)))
    const texts = await Promise.all(ids.map((id, i) => work(new Backend(url, id), { text: WORDS.slice(0, 10 * (i + 1)) }))) // all with one message id
    await Promise.all(done)
    const later = new Page(url)
    for (const [i, id] of ids.entries()) {
      assert.equal((await later.replay(id)).threadId, `thread_${id}`)
      assert.deepEqual(shown(later.panel(id)), shown(page.panel(id)))
      assert.deepEqual(shown(later.panel(id)).messages, [[texts[i], "complete"]])
    }
    const one = later.next((m) => m.type === "clear.history")
    later.socket.send({ type: "clear.history", elementId: "element_2" })
    await one
    assert.deepEqual((await later.open("element_2")).messages, [])
    assert.deepEqual(shown(later.panel("element_3")).messages, [[texts[2], "complete"]])
  },

  async "sessions are independent"(world) {
    const [a, b] = [await begin(world), await begin(world)]
    const done = a.page.next(ended("element_4"))
    await work(a.backend)
    await done
    assert.deepEqual(shown(await b.page.open("element_4")), { messages: [], thinking: [], tools: [] })
    assert.equal(b.page.heard.length, 1)
  },

  async "a page is refreshed in the middle of a text"(world) {
    const { url, page, backend } = await begin(world)
    await backend.start("m")
    for (const delta of WORDS.slice(0, 50)) await backend.say("m", delta)
    await page.until(() => page.panel("element_4").messages[0]?.typed === WORDS.slice(0, 50).join(""))
    const refreshed = new Page(url)
    const snapshot = await refreshed.replay("element_4")
    assert.deepEqual([snapshot.messages[0].status, snapshot.messages[0].content], ["streaming", WORDS.slice(0, 50).join("")])
    const both = [page, refreshed].map((p) => p.next(ended("element_4")))
    for (const delta of WORDS.slice(50)) await backend.say("m", delta)
    await backend.end("m")
    await Promise.all(both)
    for (const p of [page, refreshed]) {
      assert.deepEqual(p.panel("element_4").messages.map((m) => [m.typed, m.content]), [[WORDS.join(""), WORDS.join("")]])
    }
  },

  async "the server is killed in the middle of a text"(world) {
    const { url, page, backend } = await begin(world)
    await backend.thinking("Analyzing…")
    await backend.toolStart("search_cve", { id: 7 })
    await backend.start("m")
    for (const delta of WORDS.slice(0, 50)) await backend.say("m", delta)
    await page.until(() => page.panel("element_4").messages[0]?.typed.includes("word20 "))
    const seen = page.panel("element_4").messages[0].typed
    await world.restart()
    await Promise.all([page.socket.closed, backend.socket.closed])

    const refreshed = new Page(url)
    const { messages: [message], thinking, tools } = await refreshed.replay("element_4")
    assert.ok(message.content.startsWith(seen), "what was shown is there")
    assert.ok(WORDS.slice(0, 50).join("").startsWith(message.content))
    assert.deepEqual([thinking[0].message, tools[0].name, message.status, tools[0].status], ["Analyzing…", "search_cve", "streaming", "running"])

    // The backend does not know which of its messages arrived. Its next one has the text so far.
    const done = refreshed.next(ended("element_4"))
    await backend.reconnect(url)
    for (const delta of WORDS.slice(50)) await backend.say("m", delta)
    await backend.toolEnd("search_cve", { found: 2 })
    await backend.end("m")
    await done
    for (const p of [refreshed, new Page(url)]) {
      const panel = await p.open("element_4")
      assert.deepEqual(shown(panel), { messages: [[WORDS.join(""), "complete"]], thinking: ["Analyzing…"], tools: TOOLS })
      assert.equal(panel.messages[0].typed, WORDS.join(""))
    }
    assert.deepEqual(backend.errors, [])
  },

  async "an agent of the server works in an element"(world) {
    const { url, page } = await begin(world)
    const done = page.next(ended("element_8"))
    await world.run(url, {
      thread: "thread_element_8", task: "Check it",
      config: { instant: true, steps: [{ think: "hm hm" }, { tool: "search_cve", args: { id: 7 }, result: { found: 2 } }, { say: "Two are found." }] },
    })
    await done // the user's words
    await page.until(() => page.panel("element_8").messages[1]?.status === "complete")
    const want = { messages: [["Check it", "complete"], ["Two are found.", "complete"]], thinking: ["hm hm"], tools: TOOLS }
    assert.deepEqual(shown(page.panel("element_8")), want)
    assert.deepEqual(shown(await new Page(url).open("element_8")), want)
  },

  async "a workflow of the server is shown element by element, through a restart"(world) {
    const { url, page } = await begin(world)
    await world.workflow(url, { bpmn: WORKFLOW, variables: { cve: "CVE-7" } })
    const complete = (p, id) => p.panel(id).messages[1]?.status === "complete"
    await page.until(() => complete(page, "element_1") && complete(page, "element_2"))
    const { element_1, element_2 } = Object.fromEntries(["element_1", "element_2"].map((id) => [id, shown(page.panel(id))]))
    for (const [panel, prompt] of [[element_1, "Look at CVE-7"], [element_2, "Find a patch of CVE-7"]]) {
      assert.deepEqual(panel.messages.map(([, status]) => status), ["complete", "complete"])
      assert.equal(panel.messages[0][0], prompt)
      assert.ok(panel.messages[1][0].includes(prompt), "the agent repeats its task")
    }
    assert.ok(!page.heard.some((m) => m.elementId === "element_4"), "the person has not decided")

    await world.waits(url, "element_3") // a task whose run has not ended would run again after the restart
    await world.restart()
    await page.socket.closed
    const refreshed = new Page(url)
    await refreshed.socket.open // before the decision: it must see the text of the last task from its start
    await world.decide(url, "element_3", { decision: "Patch" })
    await refreshed.until(() => complete(refreshed, "element_4"))
    assert.equal(refreshed.panel("element_4").messages[0].content, "Patch it")
    assert.deepEqual([...refreshed.panels.keys()], ["element_4"], "no other task runs again")
    const later = new Page(url)
    for (const [id, panel] of [["element_1", element_1], ["element_2", element_2], ["element_4", shown(refreshed.panel("element_4"))]]) {
      assert.equal((await later.replay(id)).threadId, `thread_${id}`)
      assert.deepEqual(shown(later.panel(id)), panel)
    }
    let state = await world.workflowOf(url)
    while (state.status === "running") state = await world.workflowOf(url)
    assert.deepEqual([state.outcome, state.variables.decision, state.elements.map((e) => e.entered)], ["completed", "Patch", state.elements.map(() => 1)])
  },

  async "an interrupted agent continues where it stopped"(world) {
    const { url, page } = await begin(world)
    const talk = (say) => ({ steps: [{ say, rate: 50 }] })
    await world.run(url, { thread: "thread_element_8", task: "Talk", config: talk(WORDS.join("").trim()) })
    await page.until(() => page.panel("element_8").messages[1]?.typed.includes("word5 "))
    await world.restart()
    await page.socket.closed
    const refreshed = new Page(url)
    const before = shown(await refreshed.open("element_8"))
    assert.equal(before.messages[1][1], "interrupted")
    const done = refreshed.until(() => refreshed.panel("element_8").messages[3]?.status === "complete")
    await world.resume(url, { thread: "thread_element_8", config: talk("That was all.") })
    await done
    const after = shown(refreshed.panel("element_8"))
    assert.deepEqual(after.messages.slice(0, 2), before.messages)
    assert.deepEqual(after.messages.at(-1), ["That was all.", "complete"])
    assert.deepEqual(shown(await new Page(url).open("element_8")), after)
  },

  async "calls of one tool end in their order"(world) {
    const { url, page, backend } = await begin(world)
    await backend.toolStart("fetch", { page: 1 })
    await backend.toolStart("fetch", { page: 2 })
    await backend.toolEnd("fetch", ["one"])
    await backend.toolEnd("fetch", "two")
    await page.until(() => page.panel("element_4").tools[1]?.status === "complete")
    const { tools } = await new Page(url).open("element_4")
    assert.deepEqual(tools.map((t) => [t.args.page, t.result]), [[1, ["one"]], [2, "two"]])
    assert.deepEqual(tools, page.panel("element_4").tools)
  },

  async "an element that has not run has an empty panel"(world) {
    const { page } = await begin(world)
    const snapshot = await page.replay("element_77")
    assert.deepEqual(snapshot, { type: "messages.snapshot", elementId: "element_77", threadId: "thread_element_77", messages: [], thinking: [], tools: [] })
  },

  async "what does not fit is refused, and nothing else"(world) {
    const { url, page } = await begin(world)
    for (const message of [
      { type: "replay.request" }, { type: "task.progress", elementId: "element_4" }, { type: "text.message.content", elementId: "element_4", messageId: "m", delta: "x" },
      { type: "task.tool.end", elementId: "element_4", toolName: "none" }, { type: "task.thinking", elementId: "../4", message: "x" },
    ]) {
      const refused = page.next((m) => m.type === "error")
      page.socket.send(message)
      assert.ok((await refused).message.length > 10)
    }
    const backend = new Backend(url, "element_4")
    const done = page.next(ended("element_4"))
    await work(backend)
    await done
    assert.equal(page.panel("element_4").messages.length, 1)
  },
}
