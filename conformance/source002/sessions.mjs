// One check for each sentence of the document on sessions: their life, presence, summaries,
// history and export. The numbers are its lines.
import assert from "node:assert/strict"

import { exampleSession, newSession, publishAll } from "./scenarios.mjs"
import { asChunk, example, SCHEMAS } from "./schemas.mjs"

const COUNTS = ["duration_ms", "turns_count", "tokens_used", "files_modified", "lines_added", "lines_removed"]
const state = (sessionId, status, turn, agentId = "coder") => ({ channel: "agentState", agentId, sessionId, status, turn })
const refused = (call, status) => assert.rejects(call, (err) => err.status >= 400 && err.status < 500 && (!status || err.status === status))
const idsOf = (list) => list.map((session) => session.id)

/** A session of three turns in which a file is edited. */
async function worked(world, title, status = "complete", agentId = "coder") {
  const id = await newSession(world, title)
  const edit = { channel: "toolCalls", ...SCHEMAS.toolCalls.event(id), agentId, tool: "Edit", input: { file_path: "/a.txt", old_string: "a", new_string: "b\nc" } }
  return publishAll(world, id, [
    state(id, "running", 1, agentId), asChunk(id, 1, "I look. ", agentId), asChunk(id, 2, "I edit. ", agentId), edit,
    asChunk(id, 3, "All is well.", agentId), state(id, status, 3, agentId),
  ])
}

/** Reads the records of a CSV text. */
function csv(text) {
  const fields = text.matchAll(/("(?:[^"]|"")*"|[^",\r\n]*)(,|\r?\n|$)/g)
  const records = [[]]
  for (const [whole, field, end] of fields) {
    if (whole === "" && records.at(-1).length === 0) break
    records.at(-1).push(field.replace(/^"|"$/g, "").replaceAll('""', '"'))
    if (end !== ",") records.push([])
  }
  return records.filter((r) => r.length > 0)
}

/** Whether a JSON value is equal to a part of another. */
function contains(whole, part) {
  try {
    assert.deepEqual(whole, part)
    return true
  } catch {
    return whole !== null && typeof whole === "object" && Object.values(whole).some((value) => contains(value, part))
  }
}

export const sessions = {
  async "53-54, 58, 71, 224: a session is created with a stream, shown and listed"(world) {
    const { id } = await world.client.create({ title: "New", projectId: "project1", taskId: "task1" })
    const session = await world.client.get(id)
    assert.deepEqual([session.id, session.title], [id, "New"])
    assert.ok(idsOf(await world.client.list()).includes(id))
    assert.deepEqual(await world.client.events(id), [])
    const subscription = world.client.subscribe(id)
    await subscription.opened
    subscription.close()
  },
  async "58: each session has an id of its own"(world) {
    const ids = await Promise.all(Array.from({ length: 5 }, () => newSession(world)))
    assert.equal(new Set(ids).size, 5)
  },
  async "72, 182-193: a session that was closed is read, and takes no more events"(world) {
    const id = await exampleSession(world)
    const live = await world.client.history(id)
    await world.client.close(id)
    await refused(world.client.publish(id, asChunk(id, 2, "late")))
    assert.deepEqual(await world.client.history(id), live)
    const subscription = world.client.subscribe(id)
    assert.deepEqual(await subscription.until((row) => row.offset === 4), live)
    subscription.close()
    await world.restart()
    await refused(world.client.publish(id, asChunk(id, 2, "late")))
    assert.deepEqual(await world.client.history(id), live)
  },
  async "98, 207: a session is deleted with its stream"(world) {
    const id = await exampleSession(world)
    await world.client.remove(id)
    await refused(world.client.get(id), 404)
    await refused(world.client.events(id), 404)
    await assert.rejects(world.client.subscribe(id).opened, { status: 404 })
    assert.ok(!idsOf(await world.client.list()).includes(id))
  },
  async "73-74, 226: users join and leave"(world) {
    const id = await newSession(world)
    const users = (answer) => answer.present.map((p) => p.userId ?? p.user)
    assert.deepEqual(users(await world.client.join(id, "ada")), ["ada"])
    const both = await world.client.join(id, "bob")
    assert.deepEqual(users(both), ["ada", "bob"])
    for (const p of both.present) for (const member of ["joinedAt", "lastSeen"]) assert.ok(member in p, member) // 136 and 137
    assert.deepEqual(users(await world.client.leave(id, "ada")), ["bob"])
    assert.deepEqual(users(await world.client.leave(id, "bob")), [])
  },

  async "56, 109-115, 239: a summary has numbers, and how it ended"(world) {
    const before = Date.now()
    const id = await worked(world)
    const summary = await world.client.summary(id)
    for (const name of COUNTS) assert.ok(Number.isSafeInteger(summary[name]) && summary[name] >= 0, `${name} ${summary[name]}`)
    assert.equal(summary.turns_count, 3) // 110
    assert.ok(summary.duration_ms <= Date.now() - before, `${summary.duration_ms} ms`) // 109
    assert.equal(typeof summary.final_status, "string") // 115
  },
  async "107-108: a summary has an id and names its session"(world) {
    const [one, two] = [await world.client.summary(await worked(world)), await worked(world)]
    const other = await world.client.summary(two)
    assert.equal(other.session_id, two)
    assert.ok(one.id && other.id && one.id !== other.id)
  },
  async "109: the duration is that of the events"(world) {
    const id = await newSession(world)
    await publishAll(world, id, [state(id, "running", 1), asChunk(id, 1, "one")])
    await new Promise((done) => setTimeout(done, 120)) // the duration that is measured
    await publishAll(world, id, [asChunk(id, 1, "two"), state(id, "complete", 1)])
    const { duration_ms } = await world.client.summary(id)
    assert.ok(duration_ms >= 100 && duration_ms < 60_000, `${duration_ms} ms`)
  },
  async "112-114: files and lines are those of the calls that edit"(world) { // what else in the schemas could say it
    const { files_modified, lines_added, lines_removed } = await world.client.summary(await worked(world))
    assert.deepEqual([files_modified, lines_added, lines_removed], [1, 2, 1])
  },
  async "115, 147: the final status is that in which the agent ended"(world) {
    const [well, badly] = [await worked(world, "Well"), await worked(world, "Badly", "error")]
    assert.match((await world.client.summary(well)).final_status, /^complete/)
    assert.match((await world.client.summary(badly)).final_status, /error|fail/)
  },
  async "240: a summary is updated with each event"(world) {
    const id = await newSession(world)
    assert.equal((await world.client.summary(id)).turns_count, 0)
    for (const turn of [1, 2, 3, 3, 4]) {
      await world.client.publish(id, asChunk(id, turn, `turn ${turn}. `))
      assert.equal((await world.client.summary(id)).turns_count, turn)
    }
  },
  async "237, 240: a summary is the same after kill -9"(world) {
    const id = await worked(world)
    const before = await world.client.summary(id)
    await world.restart()
    assert.deepEqual(await world.client.summary(id), before)
  },

  async "247-248: the history is filtered by status"(world) {
    const ids = [await worked(world, "Well"), await worked(world, "Badly", "error"), await newSession(world)]
    const statuses = await Promise.all(ids.map(async (id) => (await world.client.get(id)).status))
    assert.equal(new Set(statuses).size, 3, `statuses ${statuses}`)
    for (const [n, status] of statuses.entries()) {
      const found = await world.client.list({ status })
      assert.deepEqual(found.filter((s) => s.status !== status), [])
      assert.deepEqual(ids.map((id) => idsOf(found).includes(id)), ids.map((_, i) => i === n), status)
    }
  },
  async "248: the history is filtered by agent"(world) {
    const ids = [await worked(world, "One", "complete", "mason"), await worked(world, "Two", "complete", "joiner")]
    assert.deepEqual(idsOf(await world.client.list({ agent: "mason" })), [ids[0]])
    assert.deepEqual(idsOf(await world.client.list({ agent: "joiner" })), [ids[1]])
    assert.deepEqual(await world.client.list({ agent: "nobody" }), [])
  },
  async "248: the history is searched"(world) {
    const ids = [await worked(world, "Whitewash the fence"), await worked(world, "Paint the porch")]
    assert.deepEqual(idsOf(await world.client.list({ q: "fence" })), [ids[0]])
    assert.deepEqual(idsOf(await world.client.list({ q: "Paint" })), [ids[1]])
    assert.deepEqual(await world.client.list({ q: "zeppelin" }), [])
  },
  async "248: the history is filtered by date"(world) {
    const id = await worked(world)
    const at = (ms) => new Date(Date.now() + ms).toISOString()
    assert.ok(idsOf(await world.client.list({ from: at(-60_000), to: at(60_000) })).includes(id))
    assert.deepEqual(await world.client.list({ from: "2001-02-03T00:00:00Z", to: "2001-02-04T00:00:00Z" }), [])
  },

  async "57, 249: a session is exported as JSON"(world) {
    const id = await exampleSession(world, "Export me")
    const { type, text } = await world.client.export(id, "json")
    assert.match(type, /json/)
    const exported = JSON.parse(text)
    for (const row of await world.client.history(id)) assert.ok(contains(exported, row.data), `event ${row.offset}`)
  },
  async "57, 249: a session is exported as Markdown"(world) {
    const id = await exampleSession(world, "Export me")
    const { type, text } = await world.client.export(id, "markdown")
    assert.match(type, /markdown/)
    for (const part of ["Export me", "I look.", "Done.", "Bash"]) assert.ok(text.includes(part), `${part} in ${text}`)
  },
  async "57, 249: a session is exported as CSV"(world) {
    const id = await newSession(world)
    await publishAll(world, id, [...example(id), asChunk(id, 2, 'a "quoted",\nlong text')])
    const { type, text } = await world.client.export(id, "csv")
    assert.match(type, /csv/)
    const [names, ...records] = csv(text)
    assert.ok(records.every((r) => r.length === names.length), text)
    const column = (name) => records.map((r) => r[names.indexOf(name)])
    for (const name of ["offset", "type", "channel"]) assert.ok(column(name).every((field) => field), name)
    assert.ok(records.at(-1).some((field) => field.includes("long text")), text)
  },
}
