// These scenarios are the typical uses of such a platform.
import assert from "node:assert/strict"

import { replay } from "./client.mjs"

const CHANNELS = ["chunks", "toolCalls", "presence", "terminal", "workflow", "agentState"]

/** A turn of an agent, as [channel, event]. */
const turn = (agentId) => [
  ["agentState", { agentId, status: "running", taskId: "t1", turn: 1, progress: 0, message: "Reading" }],
  ["chunks", { id: "c1", agentId, text: "I look ", turn: 1, timestamp: Date.now() }],
  ["chunks", { id: "c2", agentId, text: "at it.", turn: 1, timestamp: Date.now() }],
  ["toolCalls", { id: "call1", agentId, tool: "Edit", input: { file_path: "/a.txt", old_string: "a", new_string: "b\nc" }, status: "running" }],
  ["toolCalls", { id: "call1", agentId, tool: "Edit", input: {}, output: "done", status: "complete", duration: 40 }],
  ["terminal", { id: "o1", type: "output", data: "ok\r\n", source: "agent", timestamp: Date.now() }],
  ["workflow", { id: "w1", taskId: "t1", type: "moved", payload: { to: "review" }, actor: "ada", timestamp: Date.now() }],
  ["presence", { userId: "ada", cursor: { line: 3 }, lastSeen: Date.now(), joinedAt: Date.now() }],
  ["agentState", { agentId, status: "completed", taskId: "t1", turn: 1, progress: 1 }],
]

async function played(client, input = {}) {
  const { id } = await client.create({ title: "A turn", projectId: "p1", taskId: "t1", ...input })
  for (const [channel, event] of turn("agent-1")) await client.publish(id, channel, event)
  return id
}

async function taken(stream, until) {
  const all = []
  for await (const e of stream) {
    all.push(e)
    if (until(e, all)) break
  }
  return all
}

export const scenarios = {
  async "a session is created with its properties"(client) {
    const { id } = await client.create({ title: "New", projectId: "p9", taskId: "t9" })
    const session = await client.get(id)
    assert.equal(session.title, "New")
    assert.deepEqual((await client.list("projectId=p9")).sessions.map((s) => s.id), [id])
    assert.deepEqual((await client.list("taskId=t9")).sessions.map((s) => s.id), [id])
  },

  async "events of six channels are published, persisted and read by channel"(client) {
    const id = await played(client)
    const events = await client.events(id)
    assert.deepEqual(events.map((e) => e.offset), events.map((_, i) => i), "offsets are dense, from 0")
    for (const e of events) for (const member of ["offset", "type", "channel", "timestamp"]) assert.ok(member in e, `${member} of ${e.type}`)
    for (const channel of CHANNELS) {
      const some = (await client.events(id, 0, `channel=${channel}`)).filter((e) => e.channel === channel)
      assert.ok(some.length > 0, `channel ${channel}`)
      assert.deepEqual(some, events.filter((e) => e.channel === channel))
    }
    const text = events.filter((e) => e.channel === "chunks").map((e) => e.data.delta ?? "").join("")
    assert.equal(text, "I look at it.")
  },

  async "an invalid event is refused"(client) {
    const { id } = await client.create({})
    for (const [channel, event] of [["nochannel", { id: "x" }], ["toolCalls", { tool: "Bash" }], ["chunks", { id: "c", text: 7 }], ["chunks", { id: "c", text: "x", sessionId: "another" }]])
      await assert.rejects(client.publish(id, channel, event), { status: 400 })
    assert.equal((await client.events(id)).length, 1)
  },

  async "a subscriber gets events that are published meanwhile"(client) {
    const { id } = await client.create({ title: "Live" })
    const abort = new AbortController()
    const heard = taken(client.subscribe(id, { signal: abort.signal }), (e) => e.type === "RUN_FINISHED")
    for (const [channel, event] of turn("agent-1")) await client.publish(id, channel, event)
    assert.deepEqual(await heard, await client.events(id))
    abort.abort()
  },

  async "a client that reconnects gets exactly the events from its offset on"(client) {
    const id = await played(client)
    const events = await client.events(id)
    for (let from = 0; from < events.length; from++) {
      const abort = new AbortController()
      const got = await taken(client.subscribe(id, { fromOffset: from, signal: abort.signal }), (e) => e.offset === events.length - 1)
      abort.abort()
      assert.deepEqual(got, events.slice(from))
      assert.deepEqual(await client.events(id, from), events.slice(from))
    }
  },

  async "two agents work at the same time"(client) {
    const { id } = await client.create({})
    const [a, b] = [turn("agent-a"), turn("agent-b")]
    for (let i = 0; i < a.length; i++)
      for (const [channel, event] of [a[i], b[i]]) await client.publish(id, channel, event.id === "call1" ? { ...event, id: `${event.agentId}.1` } : event)
    assert.equal((await client.get(id)).status, "complete")
  },

  async "an agent that fails leaves a failed session"(client) {
    const { id } = await client.create({})
    await client.publish(id, "agentState", { agentId: "agent-1", status: "running" })
    await client.publish(id, "agentState", { agentId: "agent-1", status: "error", error: "no quota" })
    assert.equal((await client.get(id)).status, "failed")
    assert.ok((await client.events(id)).some((e) => e.data?.message === "no quota"))
  },

  async "the history lists sessions with their summaries, and filters them"(client) {
    const id = await played(client, { title: "Summed up", projectId: "p2" })
    const { sessions } = await client.list("summary=true&projectId=p2&status=complete")
    assert.deepEqual(sessions.map((s) => s.id), [id])
    const { summary } = sessions[0]
    for (const member of ["duration_ms", "turns_count", "tokens_used", "files_modified", "lines_added", "lines_removed", "final_status"])
      assert.ok(member in summary, member)
    assert.equal(summary.final_status, "complete")
    assert.deepEqual([summary.files_modified, summary.lines_added, summary.lines_removed], [1, 2, 1])
    assert.equal((await client.summary(id)).lines_added, 2)
    assert.equal((await client.list("projectId=p2&status=failed")).sessions.length, 0)
    const today = new Date().toISOString().slice(0, 10)
    assert.ok((await client.list(`from=${today}&q=Summed`)).sessions.some((s) => s.id === id))
  },

  async "a closed session is replayed with its own timing, and accepts no more events"(client) {
    const id = await played(client)
    await client.close(id)
    const abort = new AbortController()
    const events = await taken(client.subscribe(id, { signal: abort.signal }), () => false) // the stream ends by itself
    assert.deepEqual(events, await client.events(id))
    const [once, fourfold] = [1, 4].map((speed) => replay(events, speed).reduce((sum, [ms]) => sum + ms, 0))
    assert.equal(fourfold, once / 4)
    assert.ok(replay(events, 1).every(([ms]) => ms >= 0))
    await assert.rejects(client.publish(id, "chunks", { id: "late", agentId: "agent-1", text: "x" }), { status: 409 })
  },

  async "users join and leave"(client) {
    const { id } = await client.create({})
    const { present } = await client.join(id, "ada")
    assert.deepEqual(present.map((p) => p.user), ["ada"])
    assert.equal((await client.leave(id, "ada")).present.length, 0)
  },

  async "a session is exported as JSON, Markdown and CSV, and deleted"(client) {
    const id = await played(client)
    assert.equal((await client.export(id, "json")).session.id, id)
    assert.match(await client.export(id, "markdown"), /I look at it\./)
    assert.match(await client.export(id, "csv"), /^offset,/m)
    await client.remove(id)
    await assert.rejects(client.get(id), { status: 404 })
  },
}
