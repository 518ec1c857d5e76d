// Scenarios of the core of CopilotKit: what its React components call. The runtime URL
// is that of Tapedeck; there is no runtime in Node.
import assert from "node:assert/strict"
import { randomUUID } from "node:crypto"

globalThis.window = { location: { origin: "http://127.0.0.1" }, addEventListener() {}, removeEventListener() {} }
const { CopilotKitCore, ɵcreateThreadStore } = await import("@copilotkit/core")

const words = (n) => Array.from({ length: n }, (_, i) => `w${i}`).join(" ")

/** A page that has the thread open. */
async function page(server, threadId, { agent = "default", transport = "rest" } = {}) {
  const errors = []
  const core = new CopilotKitCore({ runtimeUrl: `${server.url}/copilotkit`, runtimeTransport: transport })
  core.subscribe({ onError: ({ code, error }) => errors.push(`${code}: ${error?.message ?? error}`) })
  await new Promise((done) => {
    const { unsubscribe } = core.subscribe({ onRuntimeConnectionStatusChanged: ({ status }) => { if (status === "connected" || status === "error") { unsubscribe(); done() } } })
    if (core.runtimeConnectionStatus === "connected") done()
  })
  const a = core.getAgent(agent)
  assert.ok(a, `the agent ${agent} is there: ${errors}`)
  a.threadId = threadId
  const types = []
  let waiting = []
  a.subscribe({ onEvent({ event }) { types.push(event.type); const list = waiting; waiting = []; for (const done of list) done() } })
  return {
    core, agent: a, errors, types,
    until: async (type) => { while (!types.includes(type)) await new Promise((done) => waiting.push(done)) },
    say: (text) => a.addMessage({ id: randomUUID(), role: "user", content: text }),
    run: (steps) => core.runAgent({ agent: a, ...(steps && { forwardedProps: { tapedeck: { config: { steps } } } }) }),
    connect: () => core.connectAgent({ agent: a }),
  }
}

const steps = [
  { state: { n: 1 } }, { think: words(6), rate: 60 }, { say: words(20), rate: 40 },
  { tool: "search", args: { q: "something that takes a while to write" }, result: "42" }, { say: "Done.", rate: 60 },
]
const shape = (p) => p.agent.messages.map((m) => [m.id, m.role, m.content, m.toolCalls?.map((c) => c.function.arguments)])
const same = (a, b) => { assert.deepEqual(shape(a), shape(b)); assert.deepEqual(a.agent.state, b.agent.state) }
const thread = () => `ck-${randomUUID()}`

export const scenarios = {
  async "a refresh during a run and after it"(server) {
    for (const transport of ["rest", "single"]) {
      const id = thread()
      const a = await page(server, id, { transport })
      a.say("hello")
      const run = a.run(steps)
      await a.until("TEXT_MESSAGE_CONTENT")
      const b = await page(server, id, { transport })
      await b.connect()
      await run
      same(b, a)
      assert.equal(b.agent.isRunning, false)
      const c = await page(server, id, { transport })
      await c.connect()
      same(c, a)
      await c.connect() // an effect of React that runs twice
      same(c, a)
      c.say("again")
      await c.run([{ say: "twice" }])
      await a.connect()
      same(c, a)
      assert.deepEqual([...a.errors, ...b.errors, ...c.errors], [])
    }
  },

  async "a page stops the run"(server) {
    const id = thread()
    const a = await page(server, id, { agent: "long" })
    a.say("talk")
    const run = a.run()
    await a.until("TEXT_MESSAGE_CONTENT")
    a.agent.abortRun()
    await run
    const b = await page(server, id, { agent: "long" })
    await b.connect()
    assert.equal(b.types.at(-1), "RUN_FINISHED")
    assert.ok(b.agent.messages.at(-1).content.length > 0, "the partial text is there")
    const c = await page(server, id, { agent: "hello" })
    await c.connect()
    same(c, b)
    c.say("again")
    await c.run([{ say: "ok" }])
    assert.equal(c.agent.messages.at(-1).content, "ok")
  },

  async "the list of threads: rename, archive, delete"(server) {
    const ids = [thread(), thread(), thread()]
    for (const id of ids) {
      const p = await page(server, id, { agent: "hello" })
      p.say(`thread ${id}`)
      await p.run([{ say: "ok" }])
    }
    const store = ɵcreateThreadStore({ fetch: globalThis.fetch })
    store.start()
    store.setContext({ runtimeUrl: `${server.url}/copilotkit`, headers: {}, agentId: "hello", limit: 2 })
    const rows = () => store.getState().threads
    const until = (found) => new Promise((done) => {
      const s = store.select(store.selectors.threads).subscribe((list) => { if (found(list)) { done(); queueMicrotask(() => s.unsubscribe()) } })
    })
    await until((list) => list.length >= 2)
    // The client orders them by the time of their last change. Two of them may have the
    // same millisecond.
    assert.deepEqual(rows().map((t) => t.id).sort(), [ids[1], ids[2]].sort())
    store.fetchNextPage()
    await until((list) => list.some((t) => t.id === ids[0]))
    await store.renameThread(ids[2], "A new name")
    await store.archiveThread(ids[1])
    await store.deleteThread(ids[0])
    const list = await (await fetch(`${server.url}/copilotkit/threads?agentId=hello&limit=1000`)).json()
    assert.equal(list.threads.find((t) => t.id === ids[2]).name, "A new name")
    assert.ok(!list.threads.some((t) => t.id === ids[1] || t.id === ids[0]))
    const all = await (await fetch(`${server.url}/copilotkit/threads?agentId=hello&limit=1000&includeArchived=true`)).json()
    assert.ok(all.threads.find((t) => t.id === ids[1]).archived)
    await store.unarchiveThread(ids[1])
    store.stop()
  },
}
