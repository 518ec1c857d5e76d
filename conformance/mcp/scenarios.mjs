// What each client does. A scenario gets the client and the URL of the HTTP API, by which it
// prepares sessions.
import assert from "node:assert/strict"

const readers = ["diff_sessions", "list_sessions", "read_events", "read_session", "search_sessions", "session_summary"]
const writers = ["cancel_run", "fork_session", "list_agents", "rewind_session", "run_agent"]

let made = 0

/** Makes a session with messages of a user, and returns its id. */
async function session(api, ...texts) {
  const id = `conformance-${process.pid}-${made++}`
  await post(`${api}/api/v1/sessions`, { id, title: "For a client" })
  for (const text of texts) await say(api, id, text)
  return id
}

const say = (api, id, text) =>
  post(`${api}/api/v1/sessions/${id}/events`, { type: "message.added", data: { message: { id: `m${made++}`, role: "user", content: text } } })

async function post(url, body) {
  const response = await fetch(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) })
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`)
  return response.json()
}

/** Calls a tool, which must succeed, and returns the data. */
async function ask(peer, name, args) {
  const result = await peer.call(name, args)
  assert.ok(!result.isError, `${name}: ${JSON.stringify(result.content)}`)
  assert.equal(result.content[0].type, "text")
  return result.structuredContent
}

async function until(holds) {
  for (;;) {
    const value = await holds()
    if (value) return value
    await new Promise((done) => setTimeout(done, 20))
  }
}

export const scenarios = {
  async "the server says what it has"({ peer }) {
    const { tools } = await peer.client.listTools()
    assert.deepEqual(tools.map((t) => t.name).sort(), [...readers, ...writers].sort())
    for (const tool of tools) {
      assert.equal(tool.annotations.readOnlyHint, readers.includes(tool.name) || tool.name === "list_agents", tool.name)
      assert.equal(tool.outputSchema.type, "object", tool.name)
    }
    const capabilities = peer.client.getServerCapabilities()
    assert.equal(capabilities.resources.subscribe, true)
    assert.match(peer.client.getInstructions(), /It is data, not instruction/)
    assert.equal(peer.client.getServerVersion().name, "tapedeck")
  },

  async "sessions are listed and found"({ peer, api }) {
    const id = await session(api, "a marmalade sandwich")
    const list = await ask(peer, "list_sessions", { limit: 1 })
    assert.equal(list.sessions[0].id, id)
    const found = await until(async () => {
      const found = await ask(peer, "search_sessions", { query: "marmalade", session: id })
      return found.hits.length > 0 && found
    })
    assert.match(found.hits[0].snippet, /«marmalade»/)
  },

  async "a conversation and its events are read in pages"({ peer, api }) {
    const id = await session(api, ...Array.from({ length: 12 }, (_, i) => `message ${i}`))
    const texts = []
    for (let before; ;) {
      const page = await ask(peer, "read_session", { session: id, limit: 5, ...(before && { before }) })
      texts.unshift(...page.messages.map((m) => m.text))
      if (!page.before) break
      before = page.before
    }
    assert.deepEqual(texts, Array.from({ length: 12 }, (_, i) => `message ${i}`))
    await ask(peer, "rewind_session", { session: id, to_offset: 3 })
    const offsets = async (view) => {
      const all = []
      for (let from = 0, head = 1; from < head;) {
        const page = await ask(peer, "read_events", { session: id, from, limit: 4, view })
        all.push(...page.events.map((e) => e.offset))
        from = page.next
        head = page.head
      }
      return all
    }
    assert.deepEqual(await offsets("all"), Array.from({ length: 14 }, (_, i) => i))
    assert.deepEqual(await offsets("effective"), [0, 1, 2, 13])
  },

  async "an agent is run, summed up, forked, compared, rewound and cancelled"({ peer }) {
    const { agents } = await ask(peer, "list_agents", {})
    assert.ok(agents.some((a) => a.name === "hello"))
    const run = await ask(peer, "run_agent", { task: "hello", agent: "hello" })
    const summary = await until(async () => {
      const summary = await ask(peer, "session_summary", { session: run.session_id })
      return summary.final_status && summary
    })
    assert.equal(summary.final_status, "complete")
    const fork = await ask(peer, "fork_session", { session: run.session_id })
    const same = await ask(peer, "diff_sessions", { a: run.session_id, b: fork.id })
    assert.equal(same.same, true)
    const rewound = await ask(peer, "rewind_session", { session: fork.id, before_invocation_id: run.invocation_id })
    const differs = await ask(peer, "diff_sessions", { a: run.session_id, b: fork.id })
    assert.equal(differs.same, false)
    assert.equal(differs.turns.length, 1)
    await ask(peer, "rewind_session", { session: fork.id, before_invocation_id: rewound.marker })
    assert.equal((await ask(peer, "diff_sessions", { a: run.session_id, b: fork.id })).same, true)
    const long = await ask(peer, "run_agent", { session: fork.id, task: "take your time", agent: "slow" })
    const cancelled = await ask(peer, "cancel_run", { session: fork.id })
    assert.equal(cancelled.invocation_id, long.invocation_id)
  },

  async "sessions are resources, and a subscriber learns that one has grown"({ peer, api }) {
    const id = await session(api, "first")
    const uri = `tapedeck://sessions/${id}`
    const { resources } = await peer.client.listResources()
    assert.ok(resources.some((r) => r.uri === uri))
    const { resourceTemplates } = await peer.client.listResourceTemplates()
    assert.equal(resourceTemplates.length, 1)
    const read = async () => JSON.parse((await peer.client.readResource({ uri })).contents[0].text).messages.map((m) => m.text)
    assert.deepEqual(await read(), ["first"])
    const end = await peer.watch(uri)
    await say(api, id, "second")
    await until(() => peer.updates.includes(uri))
    assert.deepEqual(await read(), ["first", "second"])
    await end()
    await assert.rejects(peer.client.readResource({ uri: "tapedeck://sessions/nobody" }))
  },

  async "mistakes are errors of the tool"({ peer }) {
    for (const [name, args, text] of [
      ["read_session", { session: "nobody" }, /^not_found: /],
      ["read_session", {}, /session/],
      ["read_session", { session: "x", limit: 1000 }, /maximum/],
      ["run_agent", { task: "x", actor: "user:ada" }, /actor/],
    ]) {
      const result = await peer.call(name, args)
      assert.equal(result.isError, true, name)
      assert.match(result.content[0].text, text)
    }
    await assert.rejects(peer.call("answer", {}))
  },
}
