// One check for each sentence of the document. The numbers are its lines.
import assert from "node:assert/strict"
import { randomUUID } from "node:crypto"
import { Executor, invocationOf, KEY, Page, words } from "./client.mjs"

const session = () => `ctx-${randomUUID()}`
const TURNS = ["turn one", "turn two", "turn three"]

/** A page after three turns, loaded. */
async function threeTurns(world, taskId) {
  const id = session()
  const page = new Page(world, id, taskId && id)
  for (const text of TURNS) await page.say(text)
  await page.load()
  return page
}

/** The first message of the user's nth turn. */
const turn = (page, n) => page.messages.find((m) => words([m])[0] === TURNS[n])

/** The user's message of a page that is loaded again, which has its invocation also while its run is open. */
const firstOf = async (page, said) => (await new Page(page.world, page.session).load()).messages.find((m) => words([m])[0] === said)

/** What is true with and without a task for each session. */
const both = (bprime) => ({
  async "the answer of a live turn is seen, and again after a reload"(world) {
    const id = session()
    const page = new Page(world, id, bprime && id)
    await page.say("hello there")
    assert.equal(page.status, "completed")
    assert.equal(page.words[0], "hello there")
    assert.match(page.words.at(-1), /hello there/, "the agent repeats its task")
    const live = page.words
    assert.deepEqual((await new Page(world, id, bprime && id).load()).words, live)
  },
  async "the text of an answer comes whole, in the last part of its artifact"(world) {
    const page = new Page(world, session())
    await page.say("hello there")
    const parts = page.events.filter((e) => e.kind === "artifact-update")
    const said = page.events.find((e) => e.kind === "status-update" && e.status.message?.role === "agent")
    assert.deepEqual(parts.filter((e) => e.lastChunk).map((e) => words([e.artifact])), [words([said.status.message])])
    assert.ok(page.events.indexOf(said) < page.events.indexOf(parts.at(-1)), "the status is first")
  },
  async "11, 195-196: each message has its invocation, live and stored"(world) {
    const id = session()
    const page = new Page(world, id, bprime && id)
    await page.say("turn one")
    const live = page.events.flatMap((e) => e.history ?? (e.status?.message ? [e.status.message] : []))
    assert.ok(live.length > 1 && live.every(invocationOf))
    await page.load()
    assert.ok(page.messages.every(invocationOf))
    assert.equal(new Set(page.messages.map(invocationOf)).size, 1)
    await page.say("turn two")
    await page.load()
    assert.equal(new Set(page.messages.map(invocationOf)).size, 2)
  },
  async "37-55: rewind to a message: the named invocation and all after it are undone, and no agent is called"(world) {
    const page = await threeTurns(world, bprime)
    const kept = page.words.slice(0, page.words.indexOf("turn two"))
    await page.rewindTo(turn(page, 1))
    assert.deepEqual(page.errors, [])
    assert.equal(page.status, "completed")
    assert.ok(page.events.length <= 2, "one or two events (55)")
    assert.deepEqual(page.words, kept)
    assert.equal((await world.log(page.session)).filter((t) => t === "RUN_STARTED").length, 3, "no agent was called (53)")
  },
  async "51: a rewind has no condition: a run that is open is cancelled"(world) {
    const page = await threeTurns(world, bprime)
    const kept = page.words.slice(0, page.words.indexOf("turn two"))
    const other = Object.assign(new Page(world, page.session, bprime && page.session), { agent: "slow" })
    const working = other.until(() => other.events.some((e) => e.status?.state === "working"))
    const ended = other.say("turn four")
    await working
    await page.rewindTo(turn(page, 1))
    await ended
    assert.deepEqual(page.errors, [])
    assert.equal(page.status, "completed")
    assert.deepEqual(page.words, kept)
    assert.deepEqual((await page.load()).words, kept)
    assert.deepEqual((await world.log(page.session)).slice(-2), ["RUN_FINISHED", "session.rewound"])
  },
  async "51: ... also one that waits for a permission"(world) {
    const id = session()
    const page = Object.assign(new Page(world, id, bprime && id), { agent: "tinker" })
    await page.say("hello there")
    const kept = (await page.load()).words
    await page.say('[run "ls -l"]')
    assert.equal(page.status, "input-required")
    await page.load()
    await page.rewindTo(page.messages.find((m) => words([m])[0] === '[run "ls -l"]'))
    assert.equal(page.status, "completed", page.errors[0])
    assert.deepEqual(page.words, kept)
    assert.deepEqual((await page.load()).words, kept)
  },
  async "143, 155: the same rewind once more, because its answer was lost, has the same result"(world) {
    const page = await threeTurns(world, bprime)
    const clicked = turn(page, 1)
    await page.rewindTo(clicked)
    const first = page.events
    await world.restart()
    await page.rewindTo(clicked)
    assert.deepEqual(page.errors, [])
    assert.deepEqual(page.events, first)
    assert.equal((await world.log(page.session)).filter((t) => t === "session.rewound").length, 1)
  },
  async "48, 54: an id that is empty or null is not set, so the message is for the agent"(world) {
    const id = session()
    const page = new Page(world, id, bprime && id)
    for (const [i, none] of ["", null].entries()) {
      await page.say(TURNS[i], { metadata: { [KEY]: none } })
      assert.equal(page.status, "completed", page.errors[0])
    }
    assert.deepEqual((await page.load()).words.filter((w) => TURNS.includes(w)), TURNS.slice(0, 2))
  },
  async "an agent that does not exist is an error in the stream, which names it"(world) {
    const page = Object.assign(new Page(world, session()), { agent: "nobody" })
    await page.say("hello there")
    assert.equal(page.status, "failed")
    assert.match(page.errors[0], /no agent "nobody"/)
  },
  async "52, 176: the stream of a rewind ends with a status that is final"(world) {
    const page = await threeTurns(world, bprime)
    await page.rewindTo(turn(page, 2))
    const last = page.events.at(-1)
    assert.deepEqual([last.kind, last.contextId, last.status.state, last.final], ["status-update", page.session, "completed", true])
  },
  async "5: all requests stay in the log, the rewind too"(world) {
    const page = await threeTurns(world, bprime)
    const before = await world.log(page.session)
    await page.rewindTo(turn(page, 1))
    assert.deepEqual(await world.log(page.session), [...before, "session.rewound"])
  },
  async "107, 127: tasks that are read again show the rewound conversation, also after kill -9"(world) {
    const page = await threeTurns(world, bprime)
    await page.rewindTo(turn(page, 1))
    const shown = page.words
    assert.deepEqual((await page.load()).words, shown)
    await world.restart()
    assert.deepEqual((await page.load()).words, shown)
  },
  async "67: a click on an answer undoes its whole invocation"(world) {
    const page = await threeTurns(world, bprime)
    const answer = page.messages.findLast((m) => invocationOf(m) === invocationOf(turn(page, 1)) && m.role === "agent")
    await page.rewindTo(answer)
    assert.deepEqual((await page.load()).words.includes("turn two"), false)
    assert.equal(page.words[0], "turn one")
  },
  async "203: a rewind before the first message leaves nothing"(world) {
    const page = await threeTurns(world, bprime)
    await page.rewindTo(turn(page, 0))
    assert.deepEqual(page.events[0].history, [])
    assert.deepEqual(page.words, [])
    assert.deepEqual((await page.load()).words, [])
  },
  async "the conversation goes on after a rewind"(world) {
    const page = await threeTurns(world, bprime)
    await page.rewindTo(turn(page, 1))
    await page.say("turn four")
    await page.load()
    assert.equal(page.words[0], "turn one")
    assert.ok(page.words.includes("turn four") && !page.words.includes("turn two") && !page.words.includes("turn three"))
  },
  async "205: an invocation that is not found is a failed status with a sentence, and changes nothing"(world) {
    const page = await threeTurns(world, bprime)
    const before = await world.log(page.session)
    const shown = page.words
    await page.sendRewindRequest("inv_none")
    assert.equal(page.status, "failed")
    assert.deepEqual(page.words, shown, "the page keeps its messages")
    assert.match(page.errors[0], /no invocation/)
    const last = page.events.at(-1)
    assert.deepEqual([last.kind, last.final], ["status-update", true])
    assert.deepEqual((await page.load()).words, shown)
    assert.deepEqual(await world.log(page.session), before)
  },
  async "204: two clicks at once undo the invocation once"(world) {
    const page = await threeTurns(world, bprime)
    const clicked = turn(page, 1)
    const other = new Page(world, page.session, bprime && page.session)
    other.messages = [...page.messages]
    await Promise.all([page.rewindTo(clicked), other.rewindTo(clicked)])
    assert.deepEqual([page.status, other.status], ["completed", "completed"])
    assert.deepEqual(page.events, other.events)
    assert.equal((await world.log(page.session)).filter((t) => t === "session.rewound").length, 1)
  },
  async "41, 205: a rewind without its session is a failed status, like any other that fails"(world) {
    const page = new Page(world, undefined)
    await page.sendRewindRequest("inv_1")
    assert.match(page.errors[0], /contextId/)
    assert.deepEqual(page.events.map((e) => [e.kind, e.status.state, e.final]), [["task", "failed", undefined], ["status-update", "failed", true]])
  },
  async "143, 147: an executor puts the effective history, with ids of its own"(world) {
    const page = await threeTurns(world, bprime)
    const executor = new Executor(world, page.session)
    const kept = executor.effective(page.messages, invocationOf(turn(page, 1)))
    const { status, body } = await executor.put(kept)
    assert.equal(status, 200, JSON.stringify(body))
    assert.deepEqual((await page.load()).words, words(kept))
    assert.equal((await executor.put(kept)).status, 200, "the same once more")
    assert.equal((await executor.put([])).status, 200)
    assert.deepEqual((await page.load()).words, [])
  },
  async "a history that is not one of the session is refused"(world) {
    const page = await threeTurns(world, bprime)
    const executor = new Executor(world, page.session)
    const other = executor.effective(page.messages, invocationOf(turn(page, 1)))
    other[0].parts = [{ kind: "text", text: "something else" }]
    for (const answer of [await executor.put(other), await executor.save(other)]) {
      assert.equal(answer.status, 409)
      assert.match(answer.body.error, /not a beginning of the conversation/)
    }
  },
})

/** The server computes the effective history from the log. 135-136 */
export const optionA = {
  ...both(false),
  async "135: the tasks of a session are those that are in force"(world) {
    const page = await threeTurns(world)
    assert.equal(page.tasks.length, 3)
    const [first] = page.tasks
    await page.rewindTo(turn(page, 1))
    await page.load()
    assert.deepEqual(page.tasks, [first])
  },
}

/** A task for each session, whose id is that of the session. 161-162 */
export const optionB = {
  ...both(true),
  async "159-163: the stream of a rewind has the whole task, under the id of the session"(world) {
    const page = await threeTurns(world, true)
    const kept = page.words.slice(0, page.words.indexOf("turn two"))
    await page.rewindTo(turn(page, 1))
    const [task] = page.events
    assert.deepEqual([task.kind, task.id, task.contextId, task.status.state], ["task", page.session, page.session, "completed"])
    assert.deepEqual(words(task.history), kept)
  },
  async "77, 160: a page is ready when the agent is, and keeps its messages until then"(world) {
    const page = await threeTurns(world, true)
    const live = Object.assign(new Page(world, page.session, page.session), { agent: "slow", messages: [...page.messages] })
    const working = live.until(() => live.events.some((e) => e.status?.state === "working"))
    const ended = live.say("turn four")
    await working
    assert.equal(live.status, "submitted")
    assert.deepEqual(live.words, [...page.words, "turn four"])
    await page.rewindTo(await firstOf(page, "turn four"))
    await ended
    assert.ok(["canceled", "completed"].includes(live.status), "the run is cancelled, or the rewound conversation is shown")
  },
  async "37, 72: a page rewinds to a message that it has just sent, and has not loaded again"(world) {
    const id = session()
    const page = new Page(world, id, id)
    for (const text of TURNS) await page.say(text)
    assert.ok(page.messages.every(invocationOf))
    await page.rewindTo(turn(page, 1))
    assert.deepEqual(page.errors, [])
    const shown = page.words
    assert.deepEqual((await page.load()).words, shown)
    assert.ok(!shown.includes("turn two"))
  },
  async "162: each message, the rewind and a reload are of the same task"(world) {
    const page = await threeTurns(world, true)
    assert.deepEqual(page.tasks.map((t) => [t.id, t.status.state]), [[page.session, "completed"]])
    await page.rewindTo(turn(page, 1))
    await page.say("turn four")
    assert.deepEqual(page.errors, [])
    assert.equal(page.status, "completed")
    await page.load()
    assert.deepEqual(page.tasks.map((t) => [t.id, t.status.state]), [[page.session, "completed"]])
  },
  async "151, 163: the task of a rewind is the task that is stored, also its state"(world) {
    const id = session()
    const page = Object.assign(new Page(world, id, id), { agent: "fail" })
    await page.say("turn one")
    assert.equal(page.status, "failed")
    page.agent = "hello"
    page.errors = []
    await page.say("turn two")
    await page.load()
    await page.rewindTo(turn(page, 1))
    const [streamed] = page.events
    await page.load()
    assert.deepEqual(page.tasks, [streamed])
    assert.equal(streamed.status.state, "completed")
    const saved = await new Executor(world, id).save(page.messages)
    assert.deepEqual(saved.body.data, streamed)
  },
  async "158: an executor saves a task that is not there yet"(world) {
    const source = await threeTurns(world, true)
    const page = new Page(world, session(), true)
    const executor = new Executor(world, page.session)
    const kept = executor.effective(source.messages, invocationOf(turn(source, 1)))
    const { status, body } = await executor.save(kept)
    assert.equal(status, 200, JSON.stringify(body))
    await page.load()
    assert.deepEqual(page.words, words(kept))
    assert.deepEqual(page.tasks, [body.data])
    await page.rewindTo(page.messages[0])
    assert.deepEqual((await page.load()).words, [])
  },
  async "161-162: before the first message the task stays, with an empty history"(world) {
    const page = await threeTurns(world, true)
    await page.rewindTo(turn(page, 0))
    await page.load()
    assert.deepEqual(page.tasks.map((t) => [t.id, t.status.state, t.history]), [[page.session, "completed", []]])
    await page.say("turn four")
    assert.equal(page.status, "completed")
    assert.equal((await page.load()).words[0], "turn four")
  },
  async "157-158: an executor saves the task with the effective history, with ids of its own"(world) {
    const page = await threeTurns(world, true)
    const executor = new Executor(world, page.session)
    const kept = executor.effective(page.messages, invocationOf(turn(page, 2)))
    const { status, body } = await executor.save(kept)
    assert.equal(status, 200, JSON.stringify(body))
    await page.load()
    assert.deepEqual(page.words, words(kept))
    assert.deepEqual(page.tasks.map((t) => t.id), [page.session])
  },
}
