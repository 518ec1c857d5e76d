import { beforeEach, describe, expect, test, vi } from "vitest";
import { createClient } from "./client.ts";
import type { TapedeckError } from "./errors.ts";
import type { Event } from "./fold/types.ts";
import { type Connection, Follower, type FollowQuery, follow, Stream } from "./follow.ts";
import { type ClientOptions, Http } from "./http.ts";
import { turns } from "./player/fake.ts";
import { FakeServer } from "./server.fake.ts";

const events = turns(3);
let server: FakeServer;
let got: number[];
let states: Connection[];
let follower: Follower;

function newFollower(o: Partial<ClientOptions> = {}): Follower {
  const listener = { onEvent: (e: Event) => got.push(e.offset), onConnection: (c: Connection) => states.push(c) };
  return new Follower(new Http(server.options(o)), "a/b", listener, server.environment);
}

beforeEach(() => {
  server = new FakeServer();
  [got, states] = [[], []];
  follower = newFollower();
});

async function start(from: number): Promise<void> {
  follower.start(from);
  await server.settle();
}

const last = () => states.at(-1);

test("it goes from connecting to caught up", async () => {
  await start(3);
  expect(server.newest.url.href).toBe("http://server/api/v1/sessions/a%2Fb/stream?fromOffset=3");
  expect(server.newest.headers.get("Accept")).toBe("text/event-stream");
  server.newest.open().event(events[3]!).frame("caught-up", { next: 4 }).event(events[4]!);
  await server.settle();
  expect(got).toEqual([3, 4]);
  expect(states.map((s) => s.state)).toEqual(["connecting", "live", "caught-up"]);
});

test.each(["cut", "lose"] as const)("a connection that is %s continues after the last event", async (how) => {
  await start(0);
  server.newest.open().event(events[0]!, events[1]!);
  await server.settle();
  server.newest[how]();
  await server.settle();
  expect(last()).toMatchObject({ state: "reconnecting", attempt: 1, error: { kind: "unreachable" } });
  await server.pass(500);
  expect(server.newest.url.searchParams.get("fromOffset")).toBe("2");
  server.newest.open().event(events[1]!, events[2]!); // the first is a duplicate
  await server.settle();
  expect(got).toEqual([0, 1, 2]);
});

describe("a session that was replaced", () => {
  const refusal = {
    error: {
      kind: "replaced",
      message: "your cursor is of another history of session a/b",
      hint: "read it from offset 0",
    },
  };

  test.each(["after an event", "at the head"])("is refused after a reconnect, %s", async (when) => {
    await start(2);
    const stream = server.newest.open();
    stream.life = "@7";
    if (when === "after an event") stream.event(events[2]!);
    else stream.frame("caught-up", { next: 2, cursor: "2@7" });
    await server.settle();
    stream.cut();
    await server.pass(500);
    expect(server.newest.url.searchParams.get("fromOffset")).toBe(when === "after an event" ? "3@7" : "2@7");
    server.newest.reply(410, refusal);
    await server.settle();
    expect(last()).toMatchObject({ state: "failed", error: { kind: "replaced", hint: "read it from offset 0" } });
  });

  test("a follower that is started again says which history it has", async () => {
    await start(0);
    const stream = server.newest.open();
    stream.life = "@7";
    stream.event(events[0]!);
    await server.settle();
    follower.stop();
    await start(1);
    expect(server.newest.url.searchParams.get("fromOffset")).toBe("1@7");
  });
});

test("it waits longer each time, never gives up, and connects at once when told to", async () => {
  await start(0);
  const waits: (number | undefined)[] = [];
  for (let n = 1; n <= 9; n++) {
    server.newest.break();
    await server.settle();
    expect(last()).toMatchObject({ state: "reconnecting", attempt: n });
    waits.push(last()?.inMs);
    await server.pass(last()?.inMs ?? 0);
    expect(server.connections).toHaveLength(n + 1);
  }
  expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 15_000, 15_000, 15_000, 15_000]);
  server.newest.break();
  await server.settle();
  follower.reconnect();
  await server.settle();
  expect(server.connections).toHaveLength(11);
  server.newest.break();
  await server.settle();
  expect(last()).toMatchObject({ attempt: 1, inMs: 500 });
});

test("a gap or half an event makes it reconnect", async () => {
  await start(0);
  server.newest.open().event(events[0]!, events[2]!);
  await server.settle();
  expect(last()?.state).toBe("reconnecting");
  expect(server.newest.aborted).toBe(true);
  await server.pass(500);
  expect(server.newest.url.searchParams.get("fromOffset")).toBe("1");
  server.newest.open().write('data: {"offset":1,"ty\n\n');
  await server.settle();
  expect(got).toEqual([0]);
  expect(last()).toMatchObject({ state: "reconnecting", error: { message: "the stream had a gap" } });
});

test("after the end it does not connect again", async () => {
  await start(0);
  server.newest.open().frame("end", { next: 0, reason: "closed" });
  await server.pass(100_000);
  expect(last()).toEqual({ state: "ended", reason: "closed" });
  expect(server.connections).toHaveLength(1);
  expect(server.listening).toBe(0);
});

describe("without a place", () => {
  let free: boolean;
  let ask: () => void; // another page asks for the place
  let left: number;

  beforeEach(() => {
    [free, left] = [false, 0];
    server.environment.place = async (_, __, onAsked) => {
      ask = onAsked;
      return free ? { leave: () => left++ } : undefined;
    };
  });

  test("it is closed when it has caught up, and opened again and again, and nobody is told", async () => {
    await start(0);
    server.newest.open().event(events[0]!).frame("caught-up", { next: 1 });
    await server.settle();
    server.newest.event(events[1]!);
    await server.pass(300);
    expect(server.newest.aborted).toBe(true);
    expect(got).toEqual([0, 1]);
    await server.pass(1999);
    expect(server.connections).toHaveLength(1);
    await server.pass(1);
    expect(server.newest.url.searchParams.get("fromOffset")).toBe("2");
    free = true; // another tab has left
    server.newest.open().event(events[2]!).frame("caught-up", { next: 3 });
    await server.pass(2300);
    server.newest.open().frame("caught-up", { next: 3 });
    await server.pass(10_000);
    server.newest.event(events[3]!);
    await server.settle();
    expect(got).toEqual([0, 1, 2, 3]);
    expect(server.connections).toHaveLength(3); // the last one stays open
    expect(states.map((s) => s.state)).toEqual(["connecting", "live", "caught-up"]);
    expect(left).toBe(0);
    follower.stop();
    await server.settle();
    expect(left).toBe(1);
  });

  test("it is closed before it has caught up if that takes long, and continues", async () => {
    await start(0);
    server.newest.open().event(events[0]!);
    await server.pass(1500);
    expect(server.newest.aborted).toBe(false); // an event that is larger than what arrives in a second must arrive
    server.newest.event(events[1]!);
    await server.pass(300);
    expect(server.newest.aborted).toBe(true);
    await server.pass(2000);
    expect(server.newest.url.searchParams.get("fromOffset")).toBe("2");
    server.newest.open().event(events[2]!).frame("caught-up", { next: 3 });
    await server.settle();
    expect([got, last()?.state]).toEqual([[0, 1, 2], "caught-up"]);
  });

  test("a session that is deleted meanwhile ends as for a stream that stays open", async () => {
    await start(0);
    server.newest.open().frame("caught-up", { next: 0 });
    await server.pass(2300);
    server.newest.refuse(404, "not_found");
    await server.settle();
    expect(last()).toEqual({ state: "ended", reason: "deleted" });
  });

  test("a connection that is lost is told, and the wait ends when the page is looked at", async () => {
    await start(0);
    server.newest.open().frame("caught-up", { next: 0 });
    await server.pass(300);
    await server.wake();
    expect(server.connections).toHaveLength(2);
    server.newest.break();
    await server.settle();
    expect(last()).toMatchObject({ state: "reconnecting", attempt: 1 });
    await server.pass(500);
    server.newest.open().frame("caught-up", { next: 0 });
    await server.settle();
    expect(states.map((s) => s.state).slice(3)).toEqual(["reconnecting", "live", "caught-up"]);
  });

  test("a place is given to a page that asks", async () => {
    free = true;
    await start(0);
    server.newest.open().frame("caught-up", { next: 0 });
    await server.pass(5000);
    free = false;
    ask();
    await server.settle();
    expect([server.newest.aborted, left]).toEqual([true, 1]);
    await server.pass(2000);
    server.newest.open().event(events[0]!).frame("caught-up", { next: 1 });
    await server.pass(300);
    expect([server.newest.aborted, got]).toEqual([true, [0]]);
  });
});

test("a status of 204 means that nothing can follow", async () => {
  await start(9);
  server.newest.reply(204);
  await server.pass(100_000);
  expect(last()).toEqual({ state: "ended", reason: "closed" });
  expect(server.connections).toHaveLength(1);
});

describe("a refusal ends it, and says why", () => {
  test.each([
    [400, "invalid"],
    [401, "unauthorized"],
    [403, "forbidden"],
  ])("%s", async (status, kind) => {
    await start(9);
    server.newest.refuse(status, kind);
    await server.pass(100_000);
    expect(last()).toMatchObject({ state: "failed", error: { kind, status, message: `it is ${kind}` } });
    expect(server.connections).toHaveLength(1);
  });

  test.each([404, 410])("%s: the session was deleted", async (status) => {
    await start(9);
    server.newest.refuse(status, status === 404 ? "not_found" : "gone");
    await server.pass(100_000);
    expect(last()).toMatchObject({ state: "ended", reason: "deleted" });
    expect(server.connections).toHaveLength(1);
  });
});

test.each([408, 429, 500, 502, 503, 507])("status %s passes, and Retry-After is kept", async (status) => {
  await start(0);
  server.newest.reply(status, "<html>sorry</html>", { "Retry-After": "7" });
  await server.settle();
  expect(last()).toMatchObject({ state: "reconnecting", inMs: 7000, error: { status } });
  await server.pass(6999);
  expect(server.connections).toHaveLength(1);
  await server.pass(1);
  expect(server.connections).toHaveLength(2);
});

test("the page of a proxy with a status of success passes after a stream, and the state says so", async () => {
  await start(0);
  server.newest.open().cut();
  await server.pass(500);
  server.newest.reply(200, "<html>please log in to the train's network</html>");
  await server.settle();
  expect(last()).toMatchObject({
    state: "reconnecting",
    error: { kind: "protocol", message: "the server answered with text/html, not with a stream of events" },
  });
});

test("a page instead of the first stream is refused: the address is wrong", async () => {
  const { done } = collect({});
  await server.settle();
  server.newest.reply(200, "<html>Welcome");
  await expect(done).rejects.toMatchObject({ kind: "protocol", status: 200 });
  expect(server.connections).toHaveLength(1);
});

test("a server of another generation is refused", async () => {
  await start(0);
  server.newest.open({ "Tapedeck-Api": "2" });
  await server.pass(100_000);
  expect(last()).toMatchObject({ state: "failed", error: { kind: "version" } });
  expect(server.connections).toHaveLength(1);
});

test("every attempt has new headers, and a token that expired in mid-stream is renewed", async () => {
  let token = 0;
  follower = newFollower({ headers: async () => ({ Authorization: `Bearer ${++token}` }) });
  await start(0);
  server.newest.open().event(events[0]!);
  await server.settle();
  server.newest.cut(); // the server ends the stream of an expired token
  await server.pass(500);
  expect(server.newest.headers.get("Authorization")).toBe("Bearer 2");
  server.newest.refuse(401, "unauthorized");
  await server.settle();
  expect(server.newest.headers.get("Authorization")).toBe("Bearer 3");
  server.newest.open().event(events[1]!);
  await server.settle();
  expect(got).toEqual([0, 1]);
  expect(states.some((s) => s.state === "failed")).toBe(false);
});

test("a token that stays refused is a refusal", async () => {
  let token = 0;
  follower = newFollower({ headers: () => ({ Authorization: `Bearer ${++token}` }) });
  await start(0);
  server.newest.refuse(401, "unauthorized");
  await server.settle();
  server.newest.refuse(401, "unauthorized");
  await server.pass(100_000);
  expect(last()).toMatchObject({ state: "failed", error: { kind: "unauthorized" } });
  expect(server.connections).toHaveLength(2);
});

test("a stream that stalls without closing is replaced; one that sends comments is not", async () => {
  await start(0);
  server.newest.open().event(events[0]!);
  for (let i = 0; i < 10; i++) {
    await server.pass(15_000);
    server.newest.write(": heartbeat\n\n");
  }
  await server.settle();
  expect(server.connections).toHaveLength(1);
  await server.pass(40_000);
  expect(server.newest.aborted).toBe(true);
  expect(last()).toMatchObject({ state: "reconnecting", error: { message: "the stream was silent for 40 s" } });
  await server.pass(500);
  expect(server.newest.url.searchParams.get("fromOffset")).toBe("1");
});

test("a server that accepts and never answers is tried again", async () => {
  await start(0);
  await server.pass(40_000);
  expect(last()?.state).toBe("reconnecting");
});

test("online and a visible page end the wait, and replace a connection that slept", async () => {
  await start(0);
  for (let i = 0; i < 6; i++) {
    server.newest.break();
    await server.pass(states.at(-1)?.inMs ?? 0);
  }
  server.newest.break();
  await server.settle();
  const before = server.connections.length;
  await server.wake();
  expect(server.connections).toHaveLength(before + 1);
  server.newest.open().event(events[0]!);
  await server.settle();
  await server.wake(); // it has just spoken
  expect(server.connections).toHaveLength(before + 1);
  server.clock += 3_600_000; // timers do not run in a sleep
  await server.wake();
  expect(last()).toMatchObject({ state: "reconnecting", error: { message: "the device slept" } });
  await server.wake();
  server.newest.open().event(events[1]!);
  await server.settle();
  expect(got).toEqual([0, 1]);
});

test("a stopped follower reports nothing", async () => {
  await start(0);
  server.newest.open();
  await server.settle();
  const old = server.newest;
  follower.stop();
  old.event(events[0]!);
  await server.pass(100_000);
  expect(got).toEqual([]);
  expect(states.map((s) => s.state)).toEqual(["connecting", "live"]);
  expect(old.aborted).toBe(true);
  expect(server.listening).toBe(0);
});

test("a follower that starts elsewhere reports only from there", async () => {
  await start(0);
  const old = server.newest.open();
  await start(4);
  old.event(events[0]!);
  server.newest.open().event(events[4]!);
  await server.settle();
  expect(got).toEqual([4]);
});

test("the roster is sent only to a listener for presence, and again with each connection", async () => {
  const said: string[] = [];
  const f = new Follower(
    new Http(server.options()),
    "s",
    { onEvent: () => undefined, onConnection: () => undefined, onPresence: (e) => said.push(e?.type ?? "reset") },
    server.environment,
  );
  f.start(3);
  await server.settle();
  expect(server.newest.url.search).toBe("?fromOffset=3&presence=live");
  server.newest.open().frame("caught-up", { next: 3 });
  server.newest.frame("presence", { type: "presence.joined", timestamp: "", data: { user: "ada" } });
  server.newest.write('event: presence\ndata: {"type":"pre\n\n');
  await server.settle();
  server.newest.cut();
  await server.pass(500);
  server.newest.open().frame("caught-up", { next: 3 });
  await server.settle();
  expect(said).toEqual(["reset", "presence.joined", "reset"]);
});

function collect(o: FollowQuery & { signal?: AbortSignal }) {
  const offsets: number[] = [];
  const done = (async () => {
    for await (const e of follow(new Http(server.options()), "s", { ...o, environment: server.environment }))
      offsets.push(e.offset);
  })();
  done.catch(() => undefined);
  return { offsets, done };
}

test("a filter leaves gaps, and the cursor moves past what it holds back", async () => {
  const { offsets } = collect({ thread: ["main", "sub"], type: "X" });
  await server.settle();
  expect(server.newest.url.search).toBe("?fromOffset=0&thread=main%2Csub&type=X");
  server.newest.open().event(events[1]!, events[4]!).frame("caught-up", { next: 9 }, 8);
  await server.settle();
  server.newest.cut();
  await server.pass(500);
  expect(server.newest.url.searchParams.get("fromOffset")).toBe("9");
  expect(offsets).toEqual([1, 4]);
});

test("until a run ends: after a cut it asks with the last event, so that the server can say that it was the end", async () => {
  const { offsets, done } = collect({ until: "terminal", invocation: "i1" });
  await server.settle();
  expect(server.newest.url.search).toBe("?fromOffset=0&until=terminal&invocation=i1");
  server.newest.open().event(events[7]!);
  await server.settle();
  server.newest.cut();
  await server.pass(500);
  expect(server.newest.url.search).toBe("?lastEventId=7&until=terminal&invocation=i1");
  server.newest.reply(204);
  await done;
  expect(offsets).toEqual([7]);
});

test("in a page, streams go past the cache, where two tabs with one stream wait for each other", async () => {
  const inits: (RequestInit | undefined)[] = [];
  const fetch = async (_: unknown, init?: RequestInit) => {
    inits.push(init);
    return new Response(null, { status: 204 });
  };
  const http = new Http({ url: "http://server", fetch });
  const ask = (type: string) => http.open("/x", { headers: { Accept: type } });
  await ask("text/event-stream");
  vi.stubGlobal("document", {});
  await ask("text/event-stream, application/json");
  await ask("application/json");
  vi.unstubAllGlobals();
  expect(inits.map((i) => i?.cache)).toEqual([undefined, "no-store", undefined]);
});

test("a deleted session is an error of the iterator", async () => {
  const { done } = collect({});
  await server.settle();
  server.newest.open().frame("end", { reason: "deleted" });
  await expect(done).rejects.toMatchObject({ kind: "not_found", message: "session s was deleted" });
});

test("a refusal is an error of the iterator", async () => {
  const { done } = collect({});
  await server.settle();
  server.newest.refuse(403, "forbidden");
  await expect(done).rejects.toMatchObject({ kind: "forbidden", status: 403, retryable: false } as TapedeckError);
});

test.each(["the request", "the connection", "the wait"])("an abort ends %s", async (where) => {
  const stop = new AbortController();
  const { done } = collect({ signal: stop.signal });
  await server.settle();
  if (where === "the wait") server.newest.break();
  else if (where === "the connection") server.newest.open();
  await server.settle();
  stop.abort();
  await expect(done).rejects.toBe(stop.signal.reason);
  expect(server.listening).toBe(0);
  await server.pass(100_000);
  expect(server.connections).toHaveLength(1);
});

test("leaving the loop ends the connection", async () => {
  const taken = (async () => {
    for await (const e of createClient(server.options()).session("s").follow()) return e.offset;
  })();
  await server.settle();
  server.newest.open().event(events[0]!, events[1]!);
  expect(await taken).toBe(0);
  expect(server.newest.aborted).toBe(true);
});

test("a slow reader keeps the connection from being read", async () => {
  const stream = new Stream(new Http(server.options()), "s", { environment: server.environment });
  const batches = stream.batches();
  const first = batches.next();
  await server.settle();
  server.newest.open().event(events[0]!);
  expect((await first).value?.map((e) => e.offset)).toEqual([0]);
  server.newest.event(events[1]!);
  server.newest.event(events[2]!);
  await server.pass(1_000_000); // no stall: nobody waits for the server
  expect(server.newest.aborted).toBe(false);
  expect((await batches.next()).value?.map((e) => e.offset)).toEqual([1]);
  await batches.return();
});

test("each event is there once and in order, wherever the connections break", async () => {
  const log = turns(12).map((e) => ({ ...e, actor: "Grüße 📼" }));
  let seed = 7;
  const random = (n: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed % n;
  };
  const { offsets } = collect({});
  for (let round = 0; offsets.length < log.length; round++) {
    expect(round).toBeLessThan(500);
    await server.settle();
    const c = server.newest;
    const from = Number(c.url.searchParams.get("fromOffset"));
    expect(from).toBe(offsets.length);
    const replayed = Math.max(0, from - random(3)); // a proxy may repeat what it has
    const text = log.slice(replayed).map((e) => `id: ${e.offset}\ndata: ${JSON.stringify(e)}\n\n`);
    const bytes = new TextEncoder().encode(text.join(""));
    const end = random(1200);
    c.open();
    for (let at = 0; at < end; ) {
      const next = Math.min(end, at + 1 + random(300)); // also in the middle of a character
      c.write(bytes.slice(at, next));
      at = next;
    }
    await server.settle();
    if (random(2) === 0) c.cut();
    else c.lose();
    await server.pass(20_000);
  }
  expect(offsets).toEqual(log.map((e) => e.offset));
});

test("an event of 10 MB arrives whole", async () => {
  const text = "x".repeat(10_000_000);
  const seen: number[] = [];
  const done = (async () => {
    for await (const e of follow(new Http(server.options()), "s", { environment: server.environment })) {
      seen.push(String(e.data?.text).length);
      return;
    }
  })();
  await server.settle();
  const bytes = new TextEncoder().encode(`data: ${JSON.stringify({ offset: 0, type: "x", data: { text } })}\n\n`);
  server.newest.open();
  for (let at = 0; at < bytes.length; at += 65_536) server.newest.write(bytes.slice(at, at + 65_536));
  await done;
  expect(seen).toEqual([text.length]);
});
