import { beforeEach, expect, test } from "vitest";
import { createClient } from "../client.ts";
import { type FakeConnection, FakeServer } from "../server.fake.ts";
import type { NewEvent } from "../wire.ts";
import { type Run, type RunOptions, record } from "./run.ts";

let server: FakeServer;
let log: NewEvent[];
let refuse: (e: NewEvent) => boolean;
let away: boolean;
let history: object[];
let renewals: string[];
let renew: (c: FakeConnection) => void;

beforeEach(() => {
  [server, log, refuse, away, history, renewals] = [new FakeServer(), [], () => false, false, [], []];
  renew = (c) => {
    renewals.push(`${String(c.body)} at ${server.clock / 1000} s`);
    c.reply(200, { session_id: "s", invocation_id: "i", lease_ms: 15_000 });
  };
});

/** Answers the requests that wait, as a server with one session does. */
async function serve(): Promise<void> {
  const answered = new Set<FakeConnection>();
  for (let round = 0; round < 20; round++) {
    await server.settle();
    for (const c of server.connections.filter((c) => !answered.has(c))) {
      answered.add(c);
      if (c.url.pathname.endsWith("/events") && c.method === "GET") c.reply(200, { events: history, has_more: false });
      else if (c.method !== "POST") c.open();
      else if (away) c.break();
      else if (c.url.pathname.endsWith("/renew")) renew(c);
      else if (c.url.pathname.endsWith("/take")) {
        const { invocation } = JSON.parse(String(c.body)) as { invocation: string };
        log.push({ type: "message.added", invocation });
        c.reply(200, {
          input_id: "inp_1",
          invocation_id: invocation,
          offset: log.length - 1,
          message: { content: "And?" },
        });
      } else {
        const events = [JSON.parse(String(c.body))].flat() as NewEvent[];
        if (events.some(refuse)) c.refuse(400, "invalid");
        else c.reply(200, { first: log.length, head: log.push(...events) });
      }
    }
    server.connections.length = 0;
  }
}

function begin(body: (run: Run) => unknown, o: RunOptions = {}) {
  const session = createClient(server.options()).session("s");
  const done = record(session, "Go", body, { agent: "a", invocation: "i", environment: server.environment, ...o });
  done.catch(() => undefined);
  return done;
}

const types = () => log.map((e) => e.type);
const last = () => log.at(-1)!;

test("a task is taken after what was said", async () => {
  const done = begin(async (run) => {
    run.text("before");
    const { message } = await run.take("inp_1");
    expect(message.content).toBe("And?");
    run.text("after");
  });
  await serve();
  await done;
  expect(types().slice(2)).toEqual([
    ...["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"],
    "message.added",
    ...["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED"],
  ]);
});

test("a run is its task, its events and one end", async () => {
  const done = begin((run) => {
    run.text("Hel");
    run.text("lo \ud800");
    run.thought("hm");
    return 7;
  });
  await serve();
  expect(await done).toBe(7);
  const middle = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "REASONING_START"];
  expect(types().slice(2, 6)).toEqual(middle);
  expect(types().slice(0, 2)).toEqual(["message.added", "RUN_STARTED"]);
  expect(types().filter((t) => t?.startsWith("RUN_"))).toEqual(["RUN_STARTED", "RUN_FINISHED"]);
  expect(log[3]!.data).toMatchObject({ delta: "Hello \ufffd" });
  expect(log[3]).toMatchObject({ actor: "agent:a", invocation: "i" });
});

test("what cannot be recorded is an error at its place", async () => {
  const done = begin((run) => {
    expect(() => run.text(7 as never)).toThrow("a text is a string, not number");
    expect(() => run.custom("acme.x", 1n)).toThrow("this is not JSON");
    run.finish();
    expect(() => run.text("late")).toThrow("run i has ended");
  });
  await serve();
  await done;
  expect(types().filter((t) => t === "RUN_FINISHED")).toHaveLength(1);
});

test("an event that is refused ends the agent and its run", async () => {
  refuse = (e) => e.type === "CUSTOM";
  const done = begin(async (run) => {
    await run.custom("bad", 1);
    await run.flush();
  });
  await serve();
  await expect(done).rejects.toMatchObject({ kind: "invalid" });
  expect(last()).toMatchObject({ type: "RUN_ERROR", data: { message: "it is invalid", code: "TapedeckError" } });
});

test("one that is asked for by itself is an error of its call, and the run continues", async () => {
  refuse = (e) => e.type === "plan.updated";
  const done = begin(async (run) => {
    await expect(run.plan([{ content: "x", status: "pending" }])).rejects.toMatchObject({ kind: "invalid" });
    await run.text("on");
  });
  await serve();
  await done;
  expect(last().type).toBe("RUN_FINISHED");
});

test("a server that is away is waited for, and not without end", async () => {
  let hang = true;
  const done = begin(async (run) => {
    away = true;
    run.text("lost");
    while (hang && !run.signal.aborted) await new Promise((r) => setImmediate(r));
    run.signal.throwIfAborted();
  });
  await serve();
  for (let i = 0; i < 12; i++) {
    await server.pass(11_000);
    await serve();
  }
  hang = false;
  await expect(done).rejects.toMatchObject({ kind: "unreachable" });
});

/** A run that says something, and ends when the test wants it. */
async function silent(o: RunOptions = {}) {
  let end = () => {};
  const done = begin(async (run) => {
    run.text("hm");
    await Promise.race([new Promise<void>((resolve) => (end = resolve)), aborted(run.signal)]);
    run.signal.throwIfAborted();
  }, o);
  await serve();
  const pass = async (seconds: number) => {
    for (let i = 0; i < seconds; i++) {
      await server.pass(1000);
      await serve();
    }
  };
  return { done, pass, end: () => end() };
}

const aborted = (s: AbortSignal) => new Promise<void>((resolve) => s.addEventListener("abort", () => resolve()));

test("a silent program renews the lease of its run, and leaves nothing in the log", async () => {
  const { done, pass, end } = await silent();
  expect(log[1]!.data).toMatchObject({ metadata: { tapedeck: { agent: "a", leaseMs: 15_000 } } });
  const events = log.length;
  const begun = server.clock / 1000;
  await pass(5);
  expect(renewals).toEqual([]); // it has spoken since the run began
  await pass(10);
  expect(renewals).toEqual([10, 15].map((s) => `{"invocation":"i"} at ${begun + s} s`));
  expect(log.length).toBe(events);
  end();
  await serve();
  await done;
  await pass(60);
  expect(renewals).toHaveLength(2);
});

test("it renews as often as the server wants, and survives a server that is away", async () => {
  renew = (c) => {
    renewals.push("");
    c.reply(200, { session_id: "s", invocation_id: "i", lease_ms: 3000 });
  };
  const { done, pass, end } = await silent({ leaseMs: 6000 });
  await pass(4);
  expect(renewals).toHaveLength(1);
  away = true;
  await pass(30);
  away = false;
  await pass(4);
  expect(renewals.length).toBeGreaterThan(2);
  end();
  await serve();
  await done;
});

test("a run that has ended stops the agent when the lease is to be renewed", async () => {
  const { done, pass } = await silent();
  renew = (c) => c.refuse(409, "conflict");
  history = [{ type: "RUN_ERROR", invocation: "i", data: { message: "silent for too long", code: "lease_expired" } }];
  await pass(10);
  await expect(done).rejects.toMatchObject({
    kind: "conflict",
    message: expect.stringContaining("silent for too long"),
  });
});

test.each([
  ["an error", new TypeError("no"), { type: "RUN_ERROR", data: { message: "no", code: "TypeError" } }],
  [
    "an AbortError",
    new DOMException("x", "AbortError"),
    { type: "RUN_FINISHED", data: { outcome: { type: "cancelled" } } },
  ],
  ["a text", "just words", { type: "RUN_ERROR", data: { message: "just words" } }],
])("%s ends the run, and continues to the caller", async (_, error, end) => {
  const done = begin(() => {
    throw error;
  });
  await serve();
  await expect(done).rejects.toBe(error);
  expect(last()).toMatchObject(end);
});

test("the signal of the caller cancels the run", async () => {
  const stop = new AbortController();
  const done = begin(
    async (run) => {
      run.text("half");
      stop.abort(new Error("enough"));
      expect(run.signal.reason).toBe(stop.signal.reason);
      run.text("more");
    },
    { signal: stop.signal },
  );
  await serve();
  await expect(done).rejects.toThrow("enough");
  expect(last()).toMatchObject({ type: "RUN_FINISHED", data: { outcome: { type: "cancelled" } } });
  expect(log.filter((e) => e.type === "TEXT_MESSAGE_CONTENT")).toHaveLength(1);
});
