// The checks of the protocol's description, section by section. Each check that ends with
// "line N" is what the sentence in line N says.
import assert from "node:assert/strict"

import { Backend, Page } from "./client.mjs"

export const WORDS = Array.from({ length: 200 }, (_, i) => (i ? " " : "") + `word${i}`)
const ELEMENT = "element_4"
const ANSWER = ["Based", " on", " the data"]
const same = assert.deepEqual

/** The flow of lines 295 to 304: a thought, a tool, and a text. */
export async function work(backend, { text = ANSWER, id = "abc-123", last = true } = {}) {
  await backend.thinking("Analyzing CVE data…")
  await backend.toolStart("search_cve", { id: 7 })
  await backend.toolEnd("search_cve", { found: 2 })
  await backend.start(id)
  for (const delta of text) await backend.say(id, delta)
  if (last) await backend.end(id)
  return text.join("")
}

/** What a panel shows after that flow, live and in a replay. */
export const panelOf = (text, id = "abc-123") => [
  { kind: "thought", text: "Analyzing CVE data…" },
  { kind: "tool", name: "search_cve", status: "complete" },
  { kind: "text", id, text, content: text, status: "complete" },
]

/** Opens a page of a new session, after its handshake, and a backend for an element. */
export async function begin(world, elementId = ELEMENT) {
  const url = await world.session()
  const page = new Page(url)
  await page.socket.open
  return { url, page, backend: new Backend(url, elementId) }
}

/** The same after the whole flow. */
async function done(world, how) {
  const all = await begin(world)
  const text = await work(all.backend, how)
  await all.page.ends(ELEMENT)
  return { ...all, text }
}

const only = (page, type) => page.heard.filter((m) => m.type === type)
const time = (value) => assert.ok(!Number.isNaN(Date.parse(value)), `${value} is a time`)

export const sections = {
  "Overview": {
    async "a click shows the history, also after a refresh"(world) {
      const { url, page, text } = await done(world)
      same(await page.click(ELEMENT), panelOf(text)) // line 7
      await page.close()
      const refreshed = new Page(url)
      same(await refreshed.click(ELEMENT), panelOf(text)) // line 8
      same(refreshed.panel(ELEMENT).map((item) => item.kind), ["thought", "tool", "text"]) // line 10
    },
  },

  "Architecture": {
    async "every event is kept as it occurs"(world) {
      const { page, backend } = await begin(world)
      const now = async () => (({ thinking, tools, messages }) => [thinking.length, tools.length, messages.length])(await page.replay(ELEMENT))
      await backend.thinking("Analyzing CVE data…")
      await page.until(() => only(page, "task.thinking").length === 1)
      same(await now(), [1, 0, 0]) // line 16
      await backend.toolStart("search_cve", {})
      await page.until(() => only(page, "task.tool.start").length === 1)
      same(await now(), [1, 1, 0]) // line 16
    },

    async "an element has a thread"(world) {
      const { url, page, backend } = await begin(world)
      const other = new Backend(url, "element_5")
      await work(backend, { last: false })
      await work(other)
      await page.ends("element_5")
      const [a, b] = [await page.replay(ELEMENT), await page.replay("element_5")]
      assert.notEqual(a.threadId, b.threadId) // line 26
      same(a.threadId, `thread_${ELEMENT}`) // line 29
      await backend.end("abc-123")
      await page.ends(ELEMENT)
      same((await page.replay(ELEMENT)).threadId, a.threadId) // lines 33 and 34
      same((await new Page(url).replay(ELEMENT)).threadId, a.threadId) // line 35
    },

    async "live events are sent to everybody and kept"(world) {
      const { url, page, backend } = await begin(world)
      const other = new Page(url)
      await other.socket.open
      const both = (type, n) => Promise.all([page, other].map((p) => p.until(() => only(p, type).length === n)))
      const kept = async () => (await page.replay(ELEMENT)).messages.map(({ content, status }) => [content, status])
      await backend.start("m")
      await both("text.message.start", 1) // line 43
      same(await kept(), [["", "streaming"]]) // line 43
      for (const delta of WORDS) await backend.say("m", delta)
      await both("text.message.content", 200) // line 44
      same(await kept(), [[WORDS.join(""), "streaming"]]) // line 44
      await backend.end("m")
      await both("text.message.end", 1) // line 45
      same(await kept(), [[WORDS.join(""), "complete"]]) // line 45
    },

    async "a client that needs the history gets a snapshot"(world) {
      const { url, text } = await done(world)
      const page = new Page(url)
      await page.click(ELEMENT) // line 54
      same(page.heard.map((m) => m.type), ["messages.snapshot"]) // lines 50 and 55
      same(page.panel(ELEMENT), panelOf(text)) // line 56
    },
  },

  "Protocol events": {
    async "live streaming events have the data of the table"(world) {
      const { page } = await done(world)
      const [start] = only(page, "text.message.start"), pieces = only(page, "text.message.content"), [end] = only(page, "text.message.end")
      const [thought] = only(page, "task.thinking"), [toolStart] = only(page, "task.tool.start"), [toolEnd] = only(page, "task.tool.end")
      same([start.messageId, start.elementId], ["abc-123", ELEMENT]) // line 67
      same(pieces.map((m) => [m.delta, m.content, m.messageId]), [["Based", "Based", "abc-123"], [" on", "Based on", "abc-123"], [" the data", "Based on the data", "abc-123"]]) // line 68
      same(end.messageId, "abc-123") // line 69
      same([thought.message, thought.elementId], ["Analyzing CVE data…", ELEMENT]) // line 70
      same([toolStart.toolName, toolStart.toolArgs], ["search_cve", { id: 7 }]) // line 71
      same([toolEnd.toolName, toolEnd.result], ["search_cve", { found: 2 }]) // line 72
      for (const m of page.heard) same(m.elementId, ELEMENT)
    },

    async "replay events have the data of the table"(world) {
      const { page } = await done(world)
      const { threadId, messages, thinking, tools } = await page.replay(ELEMENT) // line 81
      same([threadId, messages.length, thinking.length, tools.length], [`thread_${ELEMENT}`, 1, 1, 1]) // line 80
      await page.clear()
      same((await page.replay(ELEMENT)).messages, []) // line 82
    },
  },

  "Backend storage": {
    async "the history has this structure"(world) {
      const { page, text } = await done(world)
      const { threadId, messages: [message], thinking: [thought], tools: [tool] } = await page.replay(ELEMENT)
      same(threadId, "thread_element_4") // line 105
      same(message.id, "abc-123") // line 108
      same(message.role, "assistant") // line 109
      same(message.content, text) // line 110
      same(message.status, "complete") // line 111
      time(message.timestamp) // line 112
      same(thought.message, "Analyzing CVE data…") // line 116
      time(thought.timestamp) // line 116
      same(tool.name, "search_cve") // line 120
      same(tool.args, { id: 7 }) // line 121
      same(tool.status, "complete") // line 122
      same(tool.result, { found: 2 }) // line 123
      time(tool.startTime) // line 124
      time(tool.endTime) // line 125
      assert.ok(Date.parse(tool.endTime) >= Date.parse(tool.startTime))
    },

    async "a message begins empty, grows as a whole, and is complete"(world) {
      const { page, backend } = await begin(world)
      const message = async () => (await page.replay(ELEMENT)).messages[0]
      await backend.start("m")
      await page.until(() => only(page, "text.message.start").length === 1)
      same([(await message()).id, (await message()).content, (await message()).status], ["m", "", "streaming"]) // lines 145 to 147
      await backend.say("m", "Hello")
      await backend.say("m", " world")
      await page.until(() => only(page, "text.message.content").length === 2)
      same((await message()).content, "Hello world") // line 152
      await backend.end("m")
      await page.ends(ELEMENT)
      same((await message()).status, "complete") // line 156
    },

    async "the snapshot has these members, and goes to the one who asks"(world) {
      const { url, page, text } = await done(world)
      const other = new Page(url)
      await other.socket.open
      const snapshot = await page.replay(ELEMENT)
      same(snapshot.type, "messages.snapshot") // line 168
      same(snapshot.elementId, ELEMENT) // line 169
      same(snapshot.threadId, `thread_${ELEMENT}`) // line 170
      same(snapshot.messages.map((m) => m.content), [text]) // line 171
      same(snapshot.thinking.length, 1) // line 172
      same(snapshot.tools.length, 1) // line 173
      await other.replay("element_9")
      same(other.heard.length, 1) // line 176
    },
  },

  "Frontend replay": {
    async "an empty panel requests its history, a full one does not"(world) {
      const { url, page, text } = await done(world)
      await page.click(ELEMENT)
      same(only(page, "messages.snapshot"), []) // line 187
      const late = new Page(url)
      same(await late.click(ELEMENT), panelOf(text)) // lines 189 to 196
      await late.replay(ELEMENT)
      same(late.panel(ELEMENT), panelOf(text)) // line 207: a snapshot replaces what is shown
      same(late.panel(ELEMENT).map((item) => item.kind), ["thought", "tool", "text"]) // lines 210, 215 and 220
      same(late.panel(ELEMENT)[2].text, text) // line 222
    },
  },

  "User experience": {
    async "events stream in real time"(world) {
      const { page, backend } = await begin(world)
      const last = () => page.panel(ELEMENT).at(-1)
      await backend.thinking("Thinking…")
      await page.until(() => last()?.text === "Thinking…") // line 233: the agent's first event is its thought
      await backend.toolStart("search_cve", {})
      await page.until(() => last().status === "running") // line 234
      await backend.toolEnd("search_cve", "done")
      await page.until(() => last().status === "complete") // line 235
      await backend.start("m")
      await page.until(() => last().kind === "text" && last().status === "streaming") // line 236
      for (const [delta, shown] of [["Based", "Based"], [" on", "Based on"], [" the", "Based on the"]]) {
        await backend.say("m", delta)
        await page.until(() => last().text === shown) // line 237
      }
      await backend.end("m")
      await page.until(() => last().status === "complete") // line 238
    },

    async "a page that was refreshed after the end sees what happened"(world) {
      const { url, page, text } = await done(world)
      await page.close() // line 254
      const refreshed = new Page(url)
      await refreshed.socket.open
      same(refreshed.panel(ELEMENT), []) // line 244
      same(await refreshed.click(ELEMENT), panelOf(text)) // lines 245 to 250, and 256 to 258
    },
  },

  "Benefits": {
    async "nothing is lost while nobody watches"(world) {
      const url = await world.session()
      const backend = new Backend(url, ELEMENT)
      const text = await work(backend)
      await backend.close()
      same(await new Page(url).click(ELEMENT), panelOf(text)) // line 263
    },

    async "live events are deltas, a replay is one message"(world) {
      const { url, page, text } = await done(world, { text: WORDS })
      const pieces = only(page, "text.message.content")
      same(pieces.map((m) => m.delta).join(""), text) // line 269
      same(pieces.length, 200) // line 286
      const later = new Page(url)
      await later.click(ELEMENT)
      same(later.heard.map((m) => m.type), ["messages.snapshot"]) // lines 266, 284 and 286
      same(later.panel(ELEMENT)[2].text, text) // lines 285 and 287
      same([later.panel(ELEMENT)[0].text, later.panel(ELEMENT)[1].name], ["Analyzing CVE data…", "search_cve"]) // lines 273 to 275
    },

    async "the history survives a refresh, and here a restart of the server"(world) {
      const { url, page, text } = await done(world)
      await world.restart()
      await page.socket.closed
      same(await new Page(url).click(ELEMENT), panelOf(text)) // lines 278 and 347
    },
  },

  "Example flow": {
    async "live execution sends the eight kinds of steps in this order"(world) {
      const { page } = await done(world, { text: WORDS })
      same(page.heard.map((m) => m.type), [
        "task.thinking", // line 296
        "task.tool.start", // line 297
        "task.tool.end", // line 298
        "text.message.start", // line 299
        ...WORDS.map(() => "text.message.content"), // lines 300 to 303
        "text.message.end", // line 304
      ])
      same(page.panel(ELEMENT), panelOf(WORDS.join(""))) // lines 306 to 310
    },

    async "a replay sends this snapshot"(world) {
      const { url, text } = await done(world)
      const page = new Page(url)
      const { threadId, thinking, tools, messages } = await page.replay(ELEMENT) // line 316
      same(threadId, "thread_element_4") // line 320
      same(thinking.map((t) => t.message), ["Analyzing CVE data…"]) // line 322
      same(tools.map(({ name, status, result }) => ({ name, status, result })), [{ name: "search_cve", status: "complete", result: { found: 2 } }]) // line 325
      same(messages.map(({ id, content, status }) => ({ id, content, status })), [{ id: "abc-123", content: text, status: "complete" }]) // lines 328 to 331
      same(page.panel(ELEMENT), panelOf(text)) // lines 336 to 339
    },
  },

  "Clearing history": {
    async "a clear deletes all history, and a second one is no error"(world) {
      const { url, page } = await done(world)
      await work(new Backend(url, "element_5"))
      await page.ends("element_5")
      await page.clear() // line 376
      same([await page.click(ELEMENT), await page.click("element_5")], [[], []]) // line 380
      await page.clear()
      await page.clear()
      same(await page.click(ELEMENT), [])
      same(only(page, "error"), [])
    },

    async "a clear before anything happened is no error"(world) {
      const { page } = await begin(world)
      await page.clear()
      same(await page.click(ELEMENT), [])
      same(only(page, "error"), [])
    },
  },

  "Testing checklist": {
    async "live streaming works"(world) {
      const { page, backend } = await begin(world)
      const working = work(backend) // line 386
      await page.click(ELEMENT) // line 387
      await working
      await page.ends(ELEMENT)
      same(page.panel(ELEMENT), panelOf(ANSWER.join(""))) // line 388
    },

    async "replay works"(world) {
      const { url, page, text } = await done(world) // line 391
      await page.close()
      const refreshed = new Page(url) // line 392
      same(await refreshed.click(ELEMENT), panelOf(text)) // lines 393 and 394
    },

    async "history persists"(world) {
      const { page, text } = await done(world) // lines 397 to 399
      same(await page.click(ELEMENT), panelOf(text)) // lines 400 and 401
    },

    async "clear works"(world) {
      const { url, page } = await done(world) // line 404
      await page.clear() // line 405
      same(await page.click(ELEMENT), []) // lines 406 and 407
      same(await new Page(url).click(ELEMENT), []) // line 407, for every page
    },

    async "multiple tasks are independent"(world) {
      const { url, page } = await begin(world)
      const ids = ["element_1", "element_2", "element_3"]
      const texts = await Promise.all(ids.map((id, i) => work(new Backend(url, id), { text: WORDS.slice(0, 10 * (i + 1)), id: `m-${i}` }))) // line 410
      await Promise.all(ids.map((id) => page.ends(id)))
      const later = new Page(url)
      for (const [i, id] of ids.entries()) {
        same((await later.replay(id)).threadId, `thread_${id}`) // line 411
        same(later.panel(id), panelOf(texts[i], `m-${i}`)) // line 412
        same(page.panel(id), panelOf(texts[i], `m-${i}`)) // line 412
      }
    },
  },
}
