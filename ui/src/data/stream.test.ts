import { beforeEach, expect, test } from "vitest";
import type { Event } from "../fold/types";
import { turns } from "./fake";
import { type Connection, Follower } from "./stream";

class FakeSource {
  closed = false;
  readyState = 1;
  private readonly on = new Map<string, (m: MessageEvent) => void>();
  readonly url: string;

  constructor(url: string) {
    this.url = url;
  }

  addEventListener(type: string, f: unknown): void {
    this.on.set(type, f as (m: MessageEvent) => void);
  }

  close(): void {
    this.closed = true;
  }

  tell(type: string, data: unknown = ""): void {
    this.on.get(type)?.({ data: typeof data === "string" ? data : JSON.stringify(data) } as MessageEvent);
  }
}

let sources: FakeSource[];
let timers: { f: () => void; ms: number; gone?: boolean }[];
let got: number[];
let states: Connection[];
let follower: Follower;
let reason: string | undefined; // why no event can follow, as the fake server reports
const events = turns(2);

beforeEach(() => {
  [sources, timers, got, states] = [[], [], [], []];
  reason = undefined;
  follower = new Follower(
    "a/b",
    { onEvent: (e: Event) => got.push(e.offset), onConnection: (c) => states.push(c) },
    environment(),
  );
});

const environment = () => ({
  open: (url: string) => {
    const s = new FakeSource(url);
    sources.push(s);
    return s;
  },
  endReason: async () => reason,
  setTimeout: (f: () => void, ms: number) => timers.push({ f, ms }) - 1,
  clearTimeout: (n: unknown) => {
    const t = timers[n as number];
    if (t) t.gone = true;
  },
});
/** The server responds with something other than a stream. */
async function refuse(): Promise<void> {
  newest().readyState = 2;
  newest().tell("error");
  await Promise.resolve();
  await Promise.resolve();
}
const newest = () => sources.at(-1)!;

test("it goes from connecting to caught up", () => {
  follower.start(3);
  expect(newest().url).toBe("/api/v1/sessions/a%2Fb/stream?fromOffset=3");
  newest().tell("open");
  newest().tell("message", events[3]);
  newest().tell("caught-up", { next: 4 });
  newest().tell("message", events[4]);
  expect(got).toEqual([3, 4]);
  expect(states.map((s) => s.state)).toEqual(["connecting", "live", "caught-up"]);
});

test("a lost connection continues after the last event", () => {
  follower.start(0);
  newest().tell("message", events[0]);
  newest().tell("message", events[1]);
  newest().tell("error");
  expect(newest().closed).toBe(true);
  expect(states.at(-1)).toEqual({ state: "reconnecting", attempt: 1 });
  timers[0]!.f();
  expect(newest().url).toContain("fromOffset=2");
  newest().tell("message", events[1]); // a duplicate
  newest().tell("message", events[2]);
  expect(got).toEqual([0, 1, 2]);
});

test("it waits longer each time, gives up after five, and tries again when told to", () => {
  follower.start(0);
  for (let n = 1; n <= 5; n++) {
    newest().tell("error");
    expect(states.at(-1)).toEqual({ state: "reconnecting", attempt: n });
    timers[n - 1]!.f();
  }
  expect(timers.map((t) => t.ms)).toEqual([1000, 2000, 4000, 8000, 16_000]);
  newest().tell("error");
  expect(states.at(-1)).toEqual({ state: "failed" });
  expect(timers).toHaveLength(5);
  follower.reconnect();
  newest().tell("message", events[0]);
  newest().tell("error");
  expect(states.at(-1)).toEqual({ state: "reconnecting", attempt: 1 });
});

test("a gap or half an event makes it reconnect", () => {
  follower.start(0);
  newest().tell("message", events[0]);
  newest().tell("message", events[2]);
  expect(states.at(-1)?.state).toBe("reconnecting");
  timers[0]!.f();
  expect(newest().url).toContain("fromOffset=1");
  newest().tell("message", '{"offset":1,"ty');
  expect(got).toEqual([0]);
  expect(newest().closed).toBe(true);
});

test("after the end it does not connect again", () => {
  follower.start(0);
  newest().tell("end", { reason: "closed" });
  newest().tell("error");
  expect(states.at(-1)).toEqual({ state: "ended", reason: "closed" });
  expect(timers).toHaveLength(0);
});

test("a closed or deleted session has ended", async () => {
  for (reason of ["closed", "deleted"]) {
    follower.start(9);
    await refuse();
    expect(states.at(-1)).toEqual({ state: "ended", reason });
  }
  expect(timers).toHaveLength(0);
});

test("any other response than a stream counts as a lost connection", async () => {
  follower.start(9);
  await refuse();
  expect(states.at(-1)).toEqual({ state: "reconnecting", attempt: 1 });
});

test("a follower that is stopped during the check reports nothing", async () => {
  reason = "closed";
  follower.start(9);
  const asked = refuse();
  follower.stop();
  await asked;
  expect(states.map((s) => s.state)).toEqual(["connecting"]);
});

test("a stopped follower reports nothing", () => {
  follower.start(0);
  const old = newest();
  old.tell("error");
  follower.stop();
  expect(timers[0]!.gone).toBe(true);
  old.tell("message", events[0]);
  expect(got).toEqual([]);
});

test("the roster is sent only to a listener for presence, and again with each connection", () => {
  const said: string[] = [];
  const f = new Follower(
    "s",
    { onEvent: () => undefined, onConnection: () => undefined, onPresence: (e) => said.push(e?.type ?? "reset") },
    environment(),
  );
  f.start(3);
  expect(newest().url).toBe("/api/v1/sessions/s/stream?fromOffset=3&presence=live");
  newest().tell("caught-up", { next: 3 });
  newest().tell("presence", { type: "presence.joined", timestamp: "", data: { user: "ada" } });
  newest().tell("presence", '{"type":"pre');
  newest().tell("error");
  timers[0]!.f();
  newest().tell("caught-up", { next: 3 });
  expect(said).toEqual(["reset", "presence.joined", "reset"]);
});
