// A client in Node follows the real program, which is killed in mid-stream.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient, TapedeckError } from "@tapedeck/client";
import { Conversation } from "@tapedeck/client/fold";

const { withServer } = await import(process.env.HARNESS);
const notes = 400;

test("each event is there once and in order, through five kills of the server", { timeout: 120_000 }, () =>
  withServer(process.env.TAPEDECK_BIN, [], async (server) => {
    const client = createClient({ url: server.url });
    const session = await client.create({ title: "Notes" });
    const producer = session.producer("writer");
    const written = (async () => {
      for (let n = 0; n < notes; n++) await producer.append({ type: "acme.note", data: { n } });
      // The newest kill may come now. A session that is closed can be closed again.
      for (let closed = false; !closed; ) {
        closed = await session.close().then(
          () => true,
          (e) => !e.retryable && e.kind === "conflict",
        );
      }
    })();

    const seen = [];
    const states = [];
    let kills = 0;
    for await (const e of session.follow({ onStatus: (c) => states.push(c.state) })) {
      seen.push(e);
      if (e.type === "acme.note" && e.data.n % 70 === 40 && kills < 5) {
        kills++;
        await server.restart();
      }
    }
    await written;
    assert.equal(kills, 5);
    assert.deepEqual(
      seen.map((e) => e.offset),
      seen.map((_, i) => i),
    );
    assert.deepEqual(
      seen.filter((e) => e.type === "acme.note").map((e) => e.data.n),
      [...Array(notes).keys()],
    );
    // Two kills may fall into one wait.
    assert.ok(states.filter((s) => s === "reconnecting").length >= 2, states.join());
    assert.equal(states.at(-1), "ended");
  }),
);

test("the run of an agent is followed to its end, and folds to the server's snapshot", { timeout: 60_000 }, () =>
  withServer(process.env.TAPEDECK_BIN, [], async (server) => {
    const client = createClient({ url: server.url });
    const { session, invocation } = await client.run({ task: "Say hello", agent: "hello" });
    const c = new Conversation().keep();
    let last;
    for await (const e of session.follow({ until: "terminal" })) {
      c.apply(e);
      last = e;
    }
    assert.equal(last.type, "RUN_FINISHED");
    assert.equal(last.invocation, invocation);
    const theirs = await session.snapshot({ at: last.offset + 1 });
    assert.deepEqual(
      c.snapshot().messages.map((m) => m.text),
      theirs.messages.map((m) => m.text),
    );
  }),
);

test("a deleted session ends its followers with an error", { timeout: 60_000 }, () =>
  withServer(process.env.TAPEDECK_BIN, [], async (server) => {
    const client = createClient({ url: server.url });
    const answer = await client.request("/api/v1/agents");
    assert.equal(answer.headers.get("Tapedeck-Api"), "1"); // the generation that the client checks
    const session = await client.create();
    const follow = session.follow();
    assert.equal((await follow.next()).value.type, "session.created");
    const refused = assert.rejects(follow.next(), (e) => e instanceof TapedeckError && e.kind === "not_found");
    await session.delete();
    await refused;
  }),
);
