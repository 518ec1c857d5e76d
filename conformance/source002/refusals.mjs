// These checks are on what the schemas and endpoints of the document exclude. It is refused
// with a sentence, and nothing is stored. The numbers are the document's lines.
import assert from "node:assert/strict"

import { CHANNELS, exampleSession, newSession } from "./scenarios.mjs"
import { asChunk, SCHEMAS, wronglyTyped } from "./schemas.mjs"

/** Calls all, of which each must be refused: [what, call]. */
async function allRefused(calls, statuses = [400, 499]) {
  const wrong = []
  for (const [what, call] of calls) {
    try {
      const answer = await call()
      wrong.push(`${what} was accepted: ${JSON.stringify(answer)}`)
    } catch (err) {
      if (!(err.status >= statuses[0] && err.status <= statuses[1])) wrong.push(`${what}: ${err.message}`)
      else if (!/\S \S/.test(err.sentence)) wrong.push(`${what}: no sentence in ${err.message}`)
    }
  }
  assert.deepEqual(wrong, [])
}

/** Publishes events to a session that has some, each of which must be refused: [what, event]. */
async function noneWritten(world, id, events) {
  const before = await world.client.history(id)
  await allRefused(events.map(([what, event]) => [what, () => world.client.publish(id, event)]))
  assert.deepEqual(await world.client.history(id), before)
}

/** An event in both forms in which it is published. */
const inBothForms = (channel, name, event) => [
  [`${channel} ${name}`, { channel, ...event }],
  [`${channel} ${name}, in data`, { type: "noted", channel, data: event }],
]
const without = (channel, id, names) => names.flatMap((name) => {
  const { [name]: _, ...event } = { ...SCHEMAS[channel].event(id), ...(name !== "id" && channel === "toolCalls" && { id: "another-call" }) } // a call that is known has its tool
  const forms = inBothForms(channel, `without ${name}`, event)
  return name === "type" ? forms.slice(0, 1) : forms // in data, the type beside it says it
})

const perChannel = Object.fromEntries(CHANNELS.flatMap((channel) => [
  [`128-155: an event of ${channel} without what makes it one is refused`, async (world) => {
    const id = await exampleSession(world)
    await noneWritten(world, id, without(channel, id, SCHEMAS[channel].core))
  }],
  [`128-155: an event of ${channel} with a member of a wrong type is refused`, async (world) => {
    const id = await exampleSession(world)
    await noneWritten(world, id, wronglyTyped(channel, id).flatMap(([name, event]) => inBothForms(channel, `with ${name} ${JSON.stringify(event[name])}`, event)))
  }],
  [`96, 128-155: an event of ${channel} of another session is refused`, async (world) => {
    const id = await exampleSession(world), other = await newSession(world)
    await noneWritten(world, id, inBothForms(channel, "of another session", SCHEMAS[channel].event(other)))
    assert.deepEqual(await world.client.history(other), [])
  }],
]))

export const refusals = {
  ...perChannel,

  async "123: an event of a seventh channel is refused"(world) {
    const id = await exampleSession(world)
    const event = SCHEMAS.chunks.event(id)
    await noneWritten(world, id, ["nochannel", "Chunks", 7, ["chunks"]].flatMap((channel) => inBothForms(JSON.stringify(channel), "as a channel", event).map(([what, e]) => [what, { ...e, channel }])))
    await noneWritten(world, id, [["no channel", event], ["an empty one", { ...event, channel: "" }], ["null", { ...event, channel: null }], ["a type of no channel", { type: "noted", data: event }]])
  },
  async "75: of several events, one that is wrong refuses all"(world) {
    const id = await exampleSession(world)
    const good = asChunk(id, 2, "good")
    await noneWritten(world, id, [["the last", [good, { ...good, text: 7 }]], ["the first", [{ ...good, channel: "x" }, good]], ["one in an array", [good, [good]]]])
  },
  async "75: what is no event is refused"(world) {
    const id = await exampleSession(world)
    const before = await world.client.history(id)
    const bodies = ["", "{", "null", "7", '"x"', "{}", "[7]", "[null]", '{"channel":"chunks"}', '{"type":"noted","channel":"chunks","data":7}', '{"type":"noted","channel":"chunks","data":null}', "[".repeat(20_000)]
    await allRefused(bodies.map((body) => [body.slice(0, 60), () => world.client.send("POST", `/${id}/events`, body)]))
    assert.deepEqual(await world.client.history(id), before)
  },
  async "53-58: what is asked of a session that is not there is refused"(world) {
    const { client } = world
    const none = "there-is-none"
    await allRefused([
      ["get", () => client.get(none)], ["events", () => client.events(none)], ["summary", () => client.summary(none)], ["export", () => client.export(none, "json")],
      ["publish", () => client.publish(none, asChunk(none, 1, "x"))], ["close", () => client.close(none)], ["join", () => client.join(none, "ada")],
    ], [404, 404])
    await assert.rejects(client.subscribe(none).opened, { status: 404 })
    await assert.rejects(client.get(none), { status: 404 })
  },
  async "97, 209: a wrong offset, limit or channel is refused"(world) {
    const id = await exampleSession(world)
    await allRefused([{ fromOffset: -1 }, { fromOffset: "x" }, { fromOffset: 1.5 }, { limit: 0 }, { limit: "x" }, { channel: "nochannel" }]
      .map((options) => [JSON.stringify(options), () => world.client.events(id, options)]))
    for (const fromOffset of [-1, "x"])
      await assert.rejects(world.client.subscribe(id, { fromOffset }).opened, (err) => err.status >= 400 && err.status < 500, `from ${fromOffset}`)
  },
  async "58: what is no session is not created"(world) {
    const before = (await world.client.list()).map((s) => s.id)
    await allRefused(["{", "7", "[]", '"x"', '{"title":7}', '{"title":["x"]}'].map((body) => [body, () => world.client.send("POST", "", body)]))
    assert.deepEqual((await world.client.list()).map((s) => s.id), before)
  },
  async "249: a form of export that is not one of three is refused"(world) {
    const id = await exampleSession(world)
    await allRefused(["xlsx", "JSON ", "../json"].map((format) => [format, () => world.client.export(id, format)]))
  },
}
