// What the protocol's description does not say, but its users need: two pages in the middle of
// a text, a server that is killed, and agents and workflows of the server itself.
import assert from "node:assert/strict"

import { Backend, Page } from "./client.mjs"
import { WORDS, begin, panelOf, work } from "./sections.mjs"

const same = assert.deepEqual
const texts = (panel) => panel.filter((item) => item.kind === "text").map(({ text, status }) => [text, status])

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

export const beyond = {
  async "sessions are independent"(world) {
    const [a, b] = [await begin(world), await begin(world)]
    await work(a.backend)
    await a.page.ends("element_4")
    same(await b.page.click("element_4"), [])
    same(b.page.heard.length, 1)
  },

  async "an element has any id"(world) {
    const element = "Prüfung der Daten/1"
    const { url, page, backend } = await begin(world, element)
    const text = await work(backend)
    await page.ends(element)
    const refreshed = new Page(url), snapshot = await refreshed.replay(element)
    same(snapshot.threadId, `thread_${element}`)
    same(await refreshed.click(element), panelOf(text))
    same(page.heard.filter((m) => m.threadId !== snapshot.threadId), [])
  },

  async "a page is refreshed in the middle of a text"(world) {
    const { url, page, backend } = await begin(world)
    await backend.start("m")
    for (const delta of WORDS.slice(0, 50)) await backend.say("m", delta)
    await page.until(() => page.panel("element_4")[0]?.text === WORDS.slice(0, 50).join(""))
    const refreshed = new Page(url)
    same(texts(await refreshed.click("element_4")), [[WORDS.slice(0, 50).join(""), "streaming"]])
    for (const delta of WORDS.slice(50)) await backend.say("m", delta)
    await backend.end("m")
    for (const p of [page, refreshed]) {
      await p.ends("element_4")
      same(texts(p.panel("element_4")), [[WORDS.join(""), "complete"]])
    }
  },

  async "the server is killed in the middle of a text"(world) {
    const { url, page, backend } = await begin(world)
    await work(backend, { text: WORDS.slice(0, 50), last: false })
    await page.until(() => page.panel("element_4")[2]?.text.includes("word20 "))
    const seen = page.panel("element_4")[2].text
    await world.restart()
    await Promise.all([page.socket.closed, backend.socket.closed])

    const refreshed = new Page(url)
    const { messages: [message] } = await refreshed.replay("element_4")
    assert.ok(message.content.startsWith(seen), "what was shown is there")
    assert.ok(WORDS.slice(0, 50).join("").startsWith(message.content))

    // The backend does not know which of its messages arrived. Its next one has the text so
    // far, but no element, and the socket is new.
    await backend.reconnect(url)
    for (const delta of WORDS.slice(50)) await backend.say("abc-123", delta)
    await backend.end("abc-123")
    await refreshed.ends("element_4")
    for (const p of [refreshed, new Page(url)]) same(await p.click("element_4"), panelOf(WORDS.join("")))
    same(backend.errors, [])
  },

  async "an agent of the server works in an element, and its prompt is not shown"(world) {
    const { url, page } = await begin(world)
    await world.run(url, {
      thread: "thread_element_4", task: "Check it",
      config: { instant: true, steps: [{ think: "Analyzing CVE data…" }, { tool: "search_cve", args: { id: 7 }, result: { found: 2 } }, { say: "Two are found." }] },
    })
    await page.ends("element_4")
    same(page.heard[0].type, "task.thinking")
    const { id } = page.panel("element_4")[2]
    same(page.panel("element_4"), panelOf("Two are found.", id))
    same(await new Page(url).click("element_4"), panelOf("Two are found.", id))
  },

  async "a workflow of the server is shown element by element, through a restart"(world) {
    const { url, page } = await begin(world)
    await world.workflow(url, { bpmn: WORKFLOW, variables: { cve: "CVE-7" } })
    await Promise.all([page.ends("element_1"), page.ends("element_2")])
    const before = ["element_1", "element_2"].map((id) => [id, page.panel(id)])
    for (const [i, prompt] of ["Look at CVE-7", "Find a patch of CVE-7"].entries()) {
      const list = texts(before[i][1])
      same(list.length, 1)
      assert.ok(list[0][0].includes(prompt), "the agent repeats its task")
    }
    same(page.panel("element_4"), [])

    await world.waits(url, "element_3") // a task whose run has not ended would run again after the restart
    await world.restart()
    await page.socket.closed
    const refreshed = new Page(url)
    await refreshed.socket.open // before the decision: it must see the text of the last task from its start
    await world.decide(url, "element_3", { decision: "Patch" })
    await refreshed.ends("element_4")
    for (const id of ["element_1", "element_2"]) same(refreshed.panel(id), []) // line 9: no other task runs again
    const later = new Page(url)
    for (const [id, panel] of [...before, ["element_4", refreshed.panel("element_4")]]) same(await later.click(id), panel)
    let state = await world.workflowOf(url)
    while (state.status === "running") state = await world.workflowOf(url)
    same([state.outcome, state.variables.decision, state.elements.map((e) => e.entered)], ["completed", "Patch", state.elements.map(() => 1)])
  },

  async "a clear while a workflow runs does not end it"(world) {
    const { url, page } = await begin(world)
    await work(new Backend(url, "element_9"))
    await page.ends("element_9")
    await world.workflow(url, { bpmn: WORKFLOW, variables: { cve: "CVE-7" } })
    await world.waits(url, "element_3")
    await page.clear() // a page does this when it hears that a workflow has started
    same(await page.click("element_9"), [])
    same(await page.click("element_1"), []) // it has ended
    await world.restart()
    await page.socket.closed
    const refreshed = new Page(url)
    await refreshed.socket.open
    await world.decide(url, "element_3", { decision: "Patch" })
    await refreshed.ends("element_4")
    let state = await world.workflowOf(url)
    while (state.status === "running") state = await world.workflowOf(url)
    same([state.outcome, state.elements.map((e) => e.entered)], ["completed", state.elements.map(() => 1)])
    same(await refreshed.click("element_1"), [])
    await refreshed.clear()
    same(await refreshed.click("element_4"), [])
  },

  async "an interrupted agent continues where it stopped"(world) {
    const { url, page } = await begin(world)
    const talk = (say) => ({ steps: [{ say, rate: 50 }] })
    await world.run(url, { thread: "thread_element_8", task: "Talk", config: talk(WORDS.join("")) })
    await page.until(() => page.panel("element_8")[0]?.text.includes("word5 "))
    await world.restart()
    await page.socket.closed
    const refreshed = new Page(url)
    const before = texts(await refreshed.click("element_8"))
    same(before[0][1], "interrupted")
    await world.resume(url, { thread: "thread_element_8", config: talk("That was all.") })
    await refreshed.ends("element_8", 2)
    const after = texts(refreshed.panel("element_8"))
    same(after, [...before, ["That was all.", "complete"]])
    same(texts(await new Page(url).click("element_8")), after)
  },

  async "nobody else writes in an element while the server runs an agent there"(world) {
    const { url, page, backend } = await begin(world)
    const { invocation } = await world.run(url, { thread: "thread_element_4", task: "Talk", config: { steps: [{ say: WORDS.join(""), rate: 20 }] } })
    await page.until(() => page.panel("element_4")[0]?.text.includes("word3 "))
    for (const frame of [{ type: "task.thinking", message: "me, too" }, { type: "task.tool.start", toolName: "t" }, { type: "element.completed" }]) {
      const refused = backend.errors.length
      await backend.socket.send({ elementId: "element_4", ...frame })
      while (backend.errors.length === refused) await new Promise((later) => setTimeout(later, 20))
    }
    assert.ok(backend.errors.every((e) => e.kind === "conflict" && e.message.includes("run by the server")), JSON.stringify(backend.errors))
    await world.cancel(url, invocation)
    await page.ends("element_4")
    same(page.panel("element_4").map((item) => item.kind), ["text"])
    await work(backend) // now it may
    await page.ends("element_4", 2)
  },

  async "calls of one tool end in their order"(world) {
    const { page, backend } = await begin(world)
    await backend.thinking("two pages")
    await backend.toolStart("fetch", { page: 1 })
    await backend.toolStart("fetch", { page: 2 })
    await backend.toolEnd("fetch", ["one"])
    await backend.toolEnd("fetch", "two")
    await page.until(() => page.panel("element_4")[2]?.status === "complete")
    same((await page.replay("element_4")).tools.map((t) => [t.args.page, t.result]), [[1, ["one"]], [2, "two"]])
  },

  async "what does not fit is refused, the socket stays open, and nothing else happens"(world) {
    const { page, backend } = await begin(world)
    for (const message of [
      { type: "replay.request" }, { type: "no.such.type", elementId: "element_4" }, { type: "text.message.content", messageId: "m", delta: "x" },
      { type: "task.tool.end", elementId: "element_4", toolName: "none" }, { type: "task.thinking", elementId: "x".repeat(200), message: "x" }, "x", [1], { type: 7 }, {},
    ]) {
      const refused = page.next((m) => m.type === "error")
      page.socket.send(message)
      assert.ok((await refused).message.length > 10)
    }
    const text = await work(backend)
    await page.ends("element_4")
    same(page.panel("element_4"), panelOf(text))
  },
}
