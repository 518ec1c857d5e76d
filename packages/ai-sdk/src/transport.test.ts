import type { UIMessage } from "ai";
import { beforeEach, describe, expect, test } from "vitest";
import { type FakeConnection, FakeServer } from "../../client/src/server.fake.ts";
import type { Chunk } from "./chunks.ts";
import { type Reconnecting, TapedeckTransport, type TapedeckTransportOptions } from "./transport.ts";

let server: FakeServer;
let waits: (Reconnecting | undefined)[];

beforeEach(() => {
  server = new FakeServer();
  waits = [];
});

function transport(o: Partial<TapedeckTransportOptions> = {}): TapedeckTransport {
  const { fetch } = server.options() as { fetch: typeof globalThis.fetch };
  const { environment } = server;
  const api = "http://server/aisdk/a";
  return new TapedeckTransport({ api, fetch, environment, onReconnect: (r) => waits.push(r), ...o });
}

const message: UIMessage = { id: "u1", role: "user", parts: [{ type: "text", text: "hi" }] };

/** Sends a message, and gathers the chunks of its answer. */
function send(t = transport(), signal = new AbortController().signal) {
  const got: Chunk[] = [];
  const done = (async () => {
    const asked = { trigger: "submit-message" as const, messageId: undefined, abortSignal: signal };
    const stream = await t.sendMessages({ ...asked, chatId: "c/1", messages: [message] });
    const reader = stream.getReader();
    for (;;) {
      const next = await reader.read();
      if (next.done) return;
      got.push(next.value as Chunk);
    }
  })();
  done.catch(() => undefined);
  return { got, done };
}

const frames = (...chunks: Chunk[]) => chunks.map((c) => `data: ${JSON.stringify(c)}\n\n`).join("");
const begin: Chunk[] = [
  { type: "start", messageId: "m" },
  { type: "start-step" },
  { type: "text-start", id: "t" },
  { type: "text-delta", id: "t", delta: "Hel" },
];
const rest: Chunk[] = [
  { type: "text-delta", id: "t", delta: "lo" },
  { type: "text-end", id: "t" },
  { type: "finish-step" },
  { type: "finish" },
];
const end = "data: [DONE]\n\n";
const said = (got: Chunk[]) => got.map((c) => c.delta ?? "").join("");

/** Answers the request that waits with the beginning of a message. */
async function begun(): Promise<FakeConnection> {
  await server.settle();
  const c = server.newest.open().write(frames(...begin));
  await server.settle();
  return c;
}

/** The stream is opened again, and ends as it should. */
async function ends(got: Chunk[], done: Promise<void>): Promise<void> {
  server.newest.open().write(frames(...begin, ...rest), end);
  await done;
  expect(got).toEqual([...begin, ...rest]);
}

describe("a request that is refused fails with a typed error", () => {
  test.each<[string, (c: FakeConnection) => unknown, object]>([
    ["the page of a proxy", (c) => c.reply(200, "<html>log in"), { kind: "protocol", message: /text\/html, not with/ }],
    ["JSON", (c) => c.reply(200, {}), { kind: "protocol", message: /application\/json, not with a stream of chunks/ }],
    ["an error of a proxy", (c) => c.reply(502, "<html>bad"), { kind: "unavailable", retryable: true }],
    ["storage that is full", (c) => c.reply(507, "full"), { kind: "unavailable", retryable: true }],
    ["no answer", (c) => c.break(), { kind: "unreachable" }],
    ["204", (c) => c.reply(204), { kind: "gone" }],
    ["403", (c) => c.refuse(403, "forbidden"), { kind: "forbidden", message: "it is forbidden", status: 403 }],
    ["413", (c) => c.refuse(413, "too_large"), { kind: "too_large", retryable: false }],
    ["a newer server", (c) => c.open({ "Tapedeck-Api": "2" }), { kind: "version", hint: /load the page again/ }],
    ["an older server", (c) => c.open({ "Tapedeck-Api": "0" }), { kind: "version", hint: "update the server" }],
  ])("%s", async (_, answer, error) => {
    const t = transport();
    const { done } = send(t);
    await server.settle();
    answer(server.newest);
    await expect(done).rejects.toMatchObject({ name: "TapedeckError", ...error });
    await server.pass(100_000);
    expect(server.connections).toHaveLength(1); // a message is not sent again without the user
    expect(t.active("c/1").streams).toBe(0);
  });
});

test("a stream without a place is read for a second at a time, and nobody is told", async () => {
  let free = false;
  let left = 0;
  server.environment.place = async () => (free ? { leave: () => left++ } : undefined);
  const { got, done } = send();
  const first = await begun();
  await server.pass(1000);
  expect(first.aborted).toBe(true);
  await server.pass(2000);
  expect(server.newest.url.search).toBe("?message=m&attempts=0");
  server.newest.open().write(frames(...begin, rest[0]!));
  await server.pass(1000);
  expect(said(got)).toBe("Hello");
  free = true;
  await server.pass(2000);
  server.newest.open().write(frames(...begin, rest[0]!));
  await server.pass(30_000);
  server.newest.write(frames(...rest.slice(1)), end);
  await done;
  expect(got).toEqual([...begin, ...rest]);
  expect(server.connections).toHaveLength(3);
  expect([waits, left]).toEqual([[], 1]);
});

describe("a stream that breaks off is opened again, and each chunk is there once", () => {
  test.each<[string, (c: FakeConnection) => unknown]>([
    ["the page of a proxy", (c) => c.reply(200, "<html>log in")],
    ["an error of a proxy", (c) => c.reply(502, "<html>bad")],
    ["storage that is full", (c) => c.refuse(507, "unavailable")],
    ["no answer", (c) => c.break()],
    ["half a chunk", (c) => c.open().write('data: {"type":').lose()],
    ["something else than chunks", (c) => c.open().write("data: <html>\n\n")],
  ])("%s in between", async (_, answer) => {
    const { got, done } = send();
    (await begun()).cut();
    await server.pass(500);
    expect(`${server.newest.url.pathname}${server.newest.url.search}`).toBe(
      "/aisdk/a/c%2F1/stream?message=m&attempts=0",
    );
    answer(server.newest);
    await server.pass(1000);
    await ends(got, done);
    expect(waits.map((w) => w?.attempt)).toContain(2);
    expect(waits.at(-1)).toBeUndefined(); // it is back
  });

  test.each<[string, (c: FakeConnection) => unknown, object]>([
    ["the token has expired", (c) => c.refuse(401, "unauthorized"), { kind: "unauthorized", status: 401 }],
    ["the message was reverted", (c) => c.refuse(404, "not_found"), { kind: "not_found" }],
    ["the server is newer now", (c) => c.open({ "Tapedeck-Api": "2" }), { kind: "version" }],
  ])("a refusal ends it: %s", async (_, answer, error) => {
    const { got, done } = send();
    (await begun()).lose();
    await server.pass(500);
    answer(server.newest);
    await expect(done).rejects.toMatchObject(error);
    expect(said(got)).toBe("Hel");
    await server.pass(100_000);
    expect(server.connections).toHaveLength(2);
  });

  test("Retry-After is kept, but not for ever", async () => {
    const { got, done } = send();
    (await begun()).cut();
    await server.pass(500);
    server.newest.reply(503, "<html>", { "Retry-After": "99999999" });
    await server.settle();
    expect(waits.at(-1)?.inMs).toBe(300_000);
    await server.pass(300_000);
    await ends(got, done);
  });

  test("one that breaks at the same place each time waits longer and longer", async () => {
    const { got, done } = send();
    const times = () => waits.flatMap((w) => w?.inMs ?? []);
    for (await begun(); times().length < 7; server.newest.open().write(frames(...begin))) {
      server.newest.cut();
      await server.settle();
      await server.pass(times().at(-1)!);
    }
    expect(times()).toEqual([500, 1000, 2000, 4000, 8000, 15_000, 15_000]);
    server.newest.write(frames(...rest), end);
    await done;
    expect(got).toEqual([...begin, ...rest]);
  });
});

describe("an end that the server names", () => {
  const cut = (why: string) =>
    [{ type: "text-end", id: "t" }, { type: "finish-step" }, { type: "error", errorText: why }]
      .map((c) => `event: cut\ndata: ${JSON.stringify(c)}\n\n`)
      .join("") + end;

  test("a token that expires in mid-stream is renewed, and nothing of the end is in the message", async () => {
    let token = 0;
    const { got, done } = send(transport({ headers: () => ({ Authorization: `Bearer ${++token}` }) }));
    (await begun()).write(cut("the token has expired")).cut();
    await server.pass(500);
    expect(waits[0]?.error).toMatchObject({ kind: "unreachable", message: "the token has expired" });
    expect(server.newest.headers.get("Authorization")).toBe("Bearer 2");
    server.newest.refuse(401, "unauthorized");
    await server.settle();
    expect(server.newest.headers.get("Authorization")).toBe("Bearer 3");
    await ends(got, done);
  });

  test("an error of the run is one", async () => {
    const { got, done } = send();
    (await begun()).write(frames({ type: "error", errorText: "no money" }), end);
    await done;
    expect(got.at(-1)).toEqual({ type: "error", errorText: "no money" });
    expect(waits).toEqual([]);
  });
});

describe("a stream that stalls without closing", () => {
  test("is replaced; one with heartbeats is not", async () => {
    const { got, done } = send();
    const c = await begun();
    for (let i = 0; i < 5; i++) {
      await server.pass(30_000);
      c.write(": heartbeat\n\n");
    }
    await server.settle();
    expect(server.connections).toHaveLength(1);
    await server.pass(40_500);
    expect(waits[0]?.error.message).toBe("the stream was silent for 40 s");
    await ends(got, done);
  });

  test("a server that accepts and never answers is asked again", async () => {
    const { got, done } = send();
    (await begun()).cut();
    await server.pass(500);
    const silent = server.newest;
    await server.pass(40_000);
    expect(silent.aborted).toBe(true);
    await server.pass(1000);
    expect(server.newest).not.toBe(silent);
    await ends(got, done);
  });
});

test("a chunk of 10 MB arrives whole", async () => {
  const { got, done } = send();
  await begun();
  const delta = "x".repeat(10_000_000);
  const bytes = new TextEncoder().encode(frames({ type: "text-delta", id: "t", delta }));
  for (let at = 0; at < bytes.length; at += 65_536) server.newest.write(bytes.slice(at, at + 65_536));
  server.newest.write(frames(...rest), end);
  await done;
  expect(said(got)).toHaveLength("Hel".length + delta.length + "lo".length);
});

describe("an abort", () => {
  test.each(["the headers", "the request", "the stream", "the wait", "the next request"])("ends %s", async (where) => {
    const stop = new AbortController();
    const headers = where === "the headers" ? { headers: () => new Promise<HeadersInit>(() => undefined) } : {};
    const t = transport(headers);
    const { done } = send(t, stop.signal);
    await server.settle();
    if (where === "the stream") await begun();
    if (where === "the wait" || where === "the next request") (await begun()).cut();
    if (where === "the next request") await server.pass(500);
    await server.settle();
    stop.abort(new Error("enough"));
    await expect(done).rejects.toThrow("enough");
    const sent = server.connections.length;
    expect(server.connections.every((c) => c.aborted)).toBe(where !== "the headers" || sent === 0);
    expect([t.active("c/1").streams, server.listening]).toEqual([0, 0]);
    await server.pass(100_000);
    expect(server.connections).toHaveLength(sent);
  });
});

describe("messages and stop", () => {
  test.each<[string, (c: FakeConnection) => unknown, object]>([
    [
      "the page of a proxy",
      (c) => c.reply(200, "<html>log in"),
      { kind: "protocol", message: /text\/html, not with JSON/ },
    ],
    [
      "an answer that is cut off",
      (c) => c.open({ "Content-Type": "application/json" }).write("[").lose(),
      { kind: "unreachable" },
    ],
    ["an error", (c) => c.refuse(403, "forbidden"), { kind: "forbidden" }],
  ])("%s is a typed error", async (_, answer, error) => {
    const t = transport();
    for (const call of [() => t.messages("c"), () => t.stop("c")]) {
      const done = call();
      done.catch(() => undefined);
      await server.settle();
      answer(server.newest);
      await expect(done).rejects.toMatchObject({ name: "TapedeckError", ...error });
    }
  });

  test("messages are a list", async () => {
    const done = transport().messages("c");
    done.catch(() => undefined);
    await server.settle();
    server.newest.reply(200, { messages: [] });
    await expect(done).rejects.toMatchObject({ kind: "protocol", message: /not with a list of messages/ });
  });
});

test("a chat without an open run has no stream", async () => {
  const t = transport();
  const done = t.reconnectToStream({ chatId: "c" });
  await server.settle();
  server.newest.reply(204);
  expect(await done).toBeNull();
  expect(t.active("c").streams).toBe(0);
});
