// Agents of this program are recorded by the real program, which is killed in mid-run.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { createClient } from "@tapedeck/client";
import { record } from "@tapedeck/client/record";

const { withServer } = await import(process.env.HARNESS);
const limit = { timeout: 120_000 };

/** A test with a session of a server, by this program and by a second client, as a screen is. */
const recording = (name, f, flags = []) =>
  test(name, limit, () =>
    withServer(process.env.TAPEDECK_BIN, flags, async (server) => {
      const session = await createClient({ url: server.url }).create();
      await f(session, createClient({ url: server.url }).session(session.id), server);
    }),
  );
/** What a model does that hears a signal. */
const stopped = (signal) =>
  new Promise((_, fail) => {
    const stop = () => fail(signal.reason);
    signal.addEventListener("abort", stop);
    if (signal.aborted) stop();
  });
const said = async (session, role = "assistant") =>
  (await session.snapshot()).messages.filter((m) => m.role === role).map((m) => m.text);
async function ends(session) {
  const list = [];
  for await (const e of session.events({ type: ["RUN_FINISHED", "RUN_ERROR"] })) list.push(e);
  return list;
}

recording(
  "everything that an agent does is in the log, and a kill of the server loses nothing",
  async (session, _, server) => {
    const words = Array.from({ length: 300 }, (_, i) => `${i} `);
    const result = await record(
      session,
      "Plan a trip",
      async (run) => {
        await run.nextTurn();
        for (const [i, word] of words.entries()) {
          await run.text(word);
          if (i === 150) await server.restart();
        }
        await run.thought("where?");
        const hits = await run.tool("search", { q: "Bern" }, () => ({ hits: 3 }));
        await assert.rejects(
          run.tool("broken", {}, () => Promise.reject(new Error("no such tool"))),
          /no such tool/,
        );
        await run.tool("quiet", null, () => undefined, { id: "call_q" });
        await run.plan([{ content: "Pack", status: "in_progress" }]);
        await run.usage({ model: "m-1", inputTokens: 3, outputTokens: 4 });
        await run.custom("acme.progress", 0.5);
        await run.text("Done");
        await run.endMessage();
        await run.text("Really");
        return hits;
      },
      { agent: "planner", actor: "user:ada", model: "m-1" },
    );
    assert.deepEqual(result, { hits: 3 });
    assert.deepEqual(await said(session), [words.join(""), "Done", "Really"]);
    assert.deepEqual(await said(session, "user"), ["Plan a trip"]);
    assert.deepEqual(await said(session, "reasoning"), ["where?"]);
    const { tool_calls, runs } = await session.snapshot();
    assert.deepEqual(
      tool_calls.map((c) => [c.name, c.status, c.result.text]),
      [
        ["search", "complete", '{"hits":3}'],
        ["broken", "failed", "no such tool"],
        ["quiet", "complete", ""],
      ],
    );
    assert.deepEqual(tool_calls[0].input, { q: "Bern" });
    assert.deepEqual(
      runs.map((r) => [r.status, r.agent]),
      [["complete", "planner"]],
    );
  },
);

recording("a step is repeated, and only the last attempt counts", async (session) => {
  await record(session, "x", async (run) => {
    await run.tool("look", {}, () => "seen");
    await run.text("Hel");
    await run.beginTool("call_lost", "lost");
    await run.attempt("the model broke off");
    await run.text("Hello");
    await run.attempt();
    await run.text("Hello again");
  });
  assert.deepEqual(await said(session), ["Hello again"]);
  const { tool_calls, runs } = await session.snapshot();
  assert.deepEqual([tool_calls.map((c) => c.name), runs[0].retries.map((r) => r.attempt)], [["look"], [2, 3]]);
  assert.equal(runs[0].retries[0].reason, "the model broke off");
});

recording("a cancel on a screen reaches the model", async (session, screen) => {
  let signal;
  const done = record(session, "x", async (run) => {
    signal = run.signal;
    await run.text("first");
    await run.flush();
    await screen.cancel();
    // A model that waits ends with its signal.
    await stopped(run.signal);
  });
  await assert.rejects(done, { name: "AbortError" });
  assert.ok(signal.aborted);
  assert.deepEqual(
    [await said(session), (await session.info()).status, (await ends(session)).length],
    [["first"], "cancelled", 1],
  );
});

recording("an agent that hears no signal hears a cancel by its next word", async (session, screen) => {
  let run;
  const done = record(session, "x", async (r) => {
    run = r;
    await r.text("first");
    await r.flush();
    await screen.cancel();
    for (;;) {
      await r.text("more ");
      await r.flush();
    }
  });
  await assert.rejects(done, { name: "AbortError" });
  assert.equal(run.status, "cancelled");
  assert.deepEqual([(await said(session)).map((t) => t.slice(0, 5)), (await ends(session)).length], [["first"], 1]);
});

recording("a rewind that reverts the run ends it", async (session, screen) => {
  const done = record(session, "x", async (run) => {
    await screen.rewind({ before: run.invocation });
    await stopped(run.signal);
  });
  await assert.rejects(done);
  assert.equal((await ends(session)).length, 1);
});

recording(
  "a run that the server has ended as abandoned says so",
  async (session) => {
    const done = record(session, "x", (run) => stopped(run.signal));
    await assert.rejects(done, { kind: "conflict", message: /was ended by somebody else/ });
    assert.equal((await session.info()).status, "interrupted");
  },
  ["--lease", "1s"],
);

recording("the run of a program that is killed ends soon, and the next one begins", async (session, screen, server) => {
  const code = `
    import { createClient } from "@tapedeck/client";
    import { record } from "@tapedeck/client/record";
    const [url, id] = process.argv.slice(1);
    await record(createClient({ url }).session(id), "x", async (run) => {
      await run.text("half");
      await run.flush();
      console.log("begun");
      await new Promise((wait) => setTimeout(wait, 600_000));
    }, { leaseMs: 2000 });`;
  const program = spawn(process.execPath, ["--input-type=module", "-e", code, server.url, session.id]);
  await once(program.stdout, "data");
  const busy = () => record(session, "y", (run) => run.text("whole"));
  await assert.rejects(busy(), { kind: "conflict" });
  const { head } = await screen.info();
  await new Promise((wait) => setTimeout(wait, 5000)); // it is silent for longer than its lease, and alive
  assert.equal((await screen.info()).head, head);
  program.kill("SIGKILL");
  const killed = Date.now();
  for await (const e of screen.follow({ until: "terminal" }))
    if (e.type === "RUN_ERROR") assert.equal(e.data.code, "lease_expired");
  assert.ok(Date.now() - killed < 15_000);
  await busy();
  assert.deepEqual(await said(session), ["half", "whole"]);
});

recording("questions are answered on a screen, several at once", async (session, screen) => {
  const answering = async () => {
    const open = {};
    for await (const e of screen.follow({ type: "permission.requested" })) {
      if (e.type === "permission.requested") open[e.data.message] = e.data.id;
      if (open["Two?"] && open["One?"]) break;
    }
    await screen.answer(open["Two?"], "reject");
    await screen.answer(open["One?"], "allow");
  };
  const answers = await record(session, "x", async (run) => {
    assert.equal(await run.ask("Now?", { timeoutMs: 1 }), undefined);
    const [one, two] = await Promise.all([run.ask("One?"), run.ask("Two?"), answering()]);
    return { one, two };
  });
  assert.deepEqual(answers, { one: "allow", two: "reject" });
});

recording("a busy thread is a conflict, and another thread is not", async (session) => {
  await record(session, "x", async () => {
    await assert.rejects(
      record(session, "y", () => undefined),
      { kind: "conflict" },
    );
    await record(session, "z", (run) => run.text("aside"), { thread: "side", agent: "helper" });
  });
  assert.deepEqual(
    (await ends(session)).map((e) => e.type),
    ["RUN_FINISHED", "RUN_FINISHED"],
  );
});
