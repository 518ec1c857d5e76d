// Scenarios of the AI SDK: its own chat, which is what useChat has inside, and its
// default transport. A front end needs no code of ours.
import assert from "node:assert/strict"
import { randomUUID } from "node:crypto"

/** A run with reasoning, text, a tool and a second model call. */
const steps = (words = 12, rate = 60) => [
  { turn: true },
  { think: "Let me think about it", rate },
  { say: text(words), rate },
  { tool: "search", args: { q: 1, text: "a long query for the search" }, ms: 50, result: { found: [42] } },
  { plan: [{ content: "Look", status: "completed" }] },
  { turn: true },
  { say: "Done.", rate },
]
const text = (words) => Array.from({ length: words }, (_, i) => `w${i}`).join(" ")

export const scenarios = ({ AbstractChat, DefaultChatTransport, createUIMessageStream, createUIMessageStreamResponse }, version) => {
  class State {
    constructor(messages) { this.list = messages; this.current = "ready"; this.waiting = [] }
    get messages() { return this.list }
    set messages(list) { this.list = list; this.notify() }
    get status() { return this.current }
    set status(status) { this.current = status; this.notify() }
    pushMessage = (m) => { this.messages = [...this.list, m] }
    popMessage = () => { this.messages = this.list.slice(0, -1) }
    replaceMessage = (i, m) => { this.messages = this.list.with(i, structuredClone(m)) }
    snapshot = (value) => structuredClone(value)
    notify() { for (const wake of this.waiting.splice(0)) wake() }
    async until(found) { while (!found()) await new Promise((done) => this.waiting.push(done)) }
  }
  class Chat extends AbstractChat {
    constructor({ messages = [], ...init }) { super({ ...init, state: new State(messages) }) }
    until(found) { return this.state.until(() => found(this)) }
  }

  const headers = version === 5 ? { "Tapedeck-AI-SDK-Version": "5" } : {}
  const load = async (server, id) => (await fetch(`${server.url}/aisdk/default/${id}/messages`)).json()
  /** A page: it loads the messages, as a framework does on its server. */
  const page = async (server, id, { agent = "hello", ...more } = {}) => {
    const chat = new Chat({
      id, messages: await load(server, id), onError: (err) => { chat.failure = err },
      transport: new DefaultChatTransport({ api: `${server.url}/aisdk/${agent}`, headers }), ...more,
    })
    return chat
  }
  const play = (chat, list, words = "hello") => chat.sendMessage({ text: words }, { body: { config: { steps: list } } })
  const said = (m) => (m?.parts ?? []).filter((p) => p.type === "text").map((p) => p.text).join("")
  const answer = (chat) => chat.messages.at(-1)
  const shape = (list) => list.map((m) => ({
    id: m.id, role: m.role, offset: m.role === "user" ? undefined : m.metadata?.tapedeck?.offset,
    parts: m.parts.map((p) => ({ type: p.type, text: p.text, state: p.state, input: p.input, output: p.output, data: p.data, error: p.errorText })),
  }))
  /** What the page shows is what a page shows that is loaded now, and nothing is there twice. */
  const same = async (server, chat) => {
    assert.equal(chat.failure, undefined)
    assert.deepEqual(shape(chat.messages), shape(await load(server, chat.id)))
    assert.equal(new Set(chat.messages.map((m) => m.id)).size, chat.messages.length)
  }
  const chatID = () => `c-${randomUUID()}`

  const list = {
    async "a chat is complete, and the same when it is loaded"(server) {
      const chat = await page(server, chatID())
      await play(chat, steps())
      assert.equal(chat.status, "ready")
      assert.equal(said(answer(chat)), `${text(12)}Done.`)
      const tool = answer(chat).parts.find((p) => p.type === "tool-search")
      assert.deepEqual([tool.state, tool.output], ["output-available", { found: [42] }])
      assert.equal(answer(chat).parts.filter((p) => p.type === "step-start").length, 2)
      await same(server, chat)
      await play(chat, [{ say: "Again" }])
      assert.deepEqual(chat.messages.map((m) => m.role), ["user", "assistant", "user", "assistant"])
      await same(server, chat)
    },

    async "a reload in the middle of a word"(server) {
      const id = chatID()
      const first = await page(server, id)
      const run = play(first, steps(60, 40))
      await first.until((c) => said(answer(c)).includes("w9 "))
      const second = await page(server, id)
      assert.deepEqual(second.messages.map((m) => m.role), ["user"])
      const resumed = second.resumeStream()
      await second.until((c) => said(answer(c)).includes("w12 "))
      const third = await page(server, id) // a second reader at the same time
      await Promise.all([run, resumed, third.resumeStream()])
      for (const chat of [first, second, third]) {
        assert.equal(said(answer(chat)), `${text(60)}Done.`)
        await same(server, chat)
      }
      await (await page(server, id)).resumeStream() // nothing runs any more
    },

    async "a client that disconnects does not stop the run, and stop does"(server) {
      const id = chatID()
      const first = await page(server, id)
      const run = play(first, [{ repeat: 0, steps: [{ say: "on and on ", rate: 50 }] }])
      await first.until((c) => said(answer(c)).includes("on"))
      await first.stop() // of the AI SDK: it only disconnects
      await run
      const second = await page(server, id)
      const resumed = second.resumeStream()
      await second.until((c) => said(answer(c)).length > 60)
      const stopped = await fetch(`${server.url}/aisdk/hello/${id}/stop`, { method: "POST" })
      assert.deepEqual(await stopped.json(), { stopped: true })
      await resumed
      assert.equal((await fetch(`${server.url}/aisdk/hello/${id}/stream`)).status, 204)
      await same(server, second)
    },

    async "another answer, and an edited message"(server) {
      const chat = await page(server, chatID())
      await play(chat, [{ say: "one" }])
      await chat.regenerate({ body: { config: { steps: [{ say: "two" }] } } })
      assert.equal(said(answer(chat)), "two")
      await same(server, chat)
      await chat.sendMessage({ text: "edited", messageId: chat.messages[0].id }, { body: { config: { steps: [{ say: "three" }] } } })
      assert.deepEqual(chat.messages.map(said), ["edited", "three"])
      await same(server, chat)
    },

    async "an error is that of the run, and one of a request is a sentence"(server) {
      const chat = await page(server, chatID())
      await play(chat, [{ say: "well" }, { error: "the provider is away" }])
      assert.equal(chat.status, "error")
      assert.equal(chat.failure.message, "the provider is away")
      assert.deepEqual(shape(chat.messages), shape(await load(server, chat.id)))
      const nobody = await page(server, chatID(), { agent: "nobody" })
      await nobody.sendMessage({ text: "hi" })
      assert.match(nobody.failure.message, /^there is no agent "nobody"; /)
    },

    async "a file reaches the log and comes back"(server) {
      const chat = await page(server, chatID())
      await chat.sendMessage({ text: "look", files: [{ type: "file", mediaType: "image/png", filename: "a.png", url: "data:image/png;base64,iVBORw0KGgo=" }] })
      const [question] = await load(server, chat.id)
      assert.deepEqual(question.parts, chat.messages[0].parts.map((p) => ({ ...p })))
    },

    async "the stream of an agent elsewhere is durable"(server) {
      const id = chatID()
      const question = { id: "u1", role: "user", parts: [{ type: "text", text: "Weather?" }] }
      const post = (path, body, type) => fetch(`${server.url}/aisdk/route/${id}/${path}`, { method: "POST", body, headers: { "content-type": type }, duplex: "half" })
      assert.equal((await post("messages", JSON.stringify({ messages: [question] }), "application/json")).status, 200)
      let proceed
      const wait = new Promise((done) => { proceed = done })
      const stream = createUIMessageStream({
        async execute({ writer }) {
          writer.write({ type: "start", messageId: "m1" })
          writer.write({ type: "start-step" })
          writer.write({ type: "tool-input-available", toolCallId: "k", toolName: "weather", input: { city: "Bern" } })
          writer.write({ type: "tool-output-available", toolCallId: "k", output: { celsius: 21 } })
          writer.write({ type: "text-start", id: "0" })
          writer.write({ type: "text-delta", id: "0", delta: "It is " })
          await wait
          writer.write({ type: "text-delta", id: "0", delta: "21 °C." })
          writer.write({ type: "text-end", id: "0" })
          writer.write({ type: "source-url", sourceId: "s", url: "https://example.org" })
          writer.write({ type: "finish-step" })
          writer.write({ type: "finish" })
        },
      })
      const recorded = post("events", createUIMessageStreamResponse({ stream }).body, "text/event-stream")
      let chat
      do chat = await page(server, id); while (await open(server, id) === 0)
      const resumed = chat.resumeStream()
      await chat.until((c) => said(answer(c)).includes("It is")) // it is recorded while it arrives
      proceed()
      assert.equal((await (await recorded).json()).messageId, "m1")
      await resumed
      assert.equal(said(answer(chat)), "It is 21 °C.")
      await same(server, chat)
    },

    async "kill -9 in the middle of a word"(server) {
      const id = chatID()
      const first = await page(server, id)
      const run = play(first, steps(400, 40))
      await first.until((c) => said(answer(c)).includes("w20 "))
      await server.restart()
      await run
      const seen = said(answer(first))
      const loaded = await load(server, id)
      assert.equal(loaded.length, 2)
      assert.ok(said(loaded[1]).startsWith(seen), `${said(loaded[1])} does not begin with ${seen}`)
      assert.equal(loaded[1].metadata.tapedeck.status, "interrupted")
      const second = await page(server, id)
      await second.regenerate({ body: { config: { steps: [{ say: "back" }] } } })
      assert.equal(said(answer(second)), "back")
      await same(server, second)
    },
  }
  if (version < 6) return list
  return {
    ...list,
    async "an approval continues the message, and a refusal denies the call"(server) {
      const id = chatID()
      const answered = ({ messages }) => {
        const states = messages.at(-1).parts.map((p) => p.state)
        return states.includes("approval-responded") && !states.includes("approval-requested")
      }
      const chat = await page(server, id, { agent: "tinker", sendAutomaticallyWhen: answered })
      const ask = () => answer(chat).parts.find((p) => p.state === "approval-requested")
      await chat.sendMessage({ text: '[tool write_file {"path":"a.txt","content":"hi"}]' })
      assert.equal(ask().type, "tool-write_file")
      const other = await page(server, id, { agent: "tinker" })
      await other.resumeStream() // a reload shows the question again
      assert.deepEqual(shape(other.messages), shape(chat.messages))
      await chat.addToolApprovalResponse({ id: ask().approval.id, approved: true })
      await chat.until((c) => c.status === "ready" && answer(c).parts.some((p) => p.state === "output-available"))
      await chat.until((c) => c.status === "ready" && !ask() && answer(c).parts.at(-1).type === "text")
      assert.equal(chat.messages.length, 2)
      assert.deepEqual(withoutSteps(chat.messages), withoutSteps(await load(server, id)))

      await chat.sendMessage({ text: '[tool write_file {"path":"b.txt","content":"hi"}]' })
      await chat.addToolApprovalResponse({ id: ask().approval.id, approved: false })
      await chat.until((c) => c.status === "ready" && answer(c).parts.at(-1).type === "text")
      assert.deepEqual(withoutSteps(chat.messages), withoutSteps(await load(server, id)))
    },
  }

  /** After an approval the steps of the page are those of its requests. */
  function withoutSteps(messages) {
    return shape(messages).map((m) => ({ ...m, parts: m.parts.filter((p) => p.type !== "step-start") }))
  }

  async function open(server, id) {
    const s = await (await fetch(`${server.url}/api/v1/sessions/${id}`)).json()
    return s.runs?.length ?? 0
  }
}
