import { spawn, spawnSync } from "node:child_process";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { Conversation } from "./conversation.ts";
import { jumpOf, Timeline } from "./timeline.ts";
import type { Event, Snapshot } from "./types.ts";

// Random logs with the snapshots that the server folds from them, see test/pages.
// The fold of the screen must give the same. LOGS=2000 sets the number of logs,
// FIRST=7 the seed of the first one.

const root = new URL("../../../..", import.meta.url);
const logs = Number(process.env.LOGS ?? 40);
const first = Number(process.env.FIRST ?? 0);

const hasGo = spawnSync("go", ["version"]).status === 0;

type Value = Record<string, unknown>;

interface Page {
  seed: number;
  events: Event[];
  /** Each turns a snapshot into the next one. The first step starts from an empty object. */
  steps: {
    set?: Value;
    lists?: Record<string, { len: number; items?: Record<string, unknown> }>;
  }[];
}

/** Runs test/pages, and yields its pages while it computes the next ones. */
async function* pages(from: number, count: number): AsyncGenerator<Page> {
  const go = spawn("go", ["run", "./test/pages", `-first=${from}`, `-logs=${count}`], { cwd: root });
  let errors = "";
  go.stderr.on("data", (text) => {
    errors += text;
  });
  const ended = new Promise((resolve) => go.on("close", resolve));
  for await (const line of createInterface({ input: go.stdout })) yield JSON.parse(line);
  expect(await ended, errors).toBe(0);
}

/** The snapshots of the server, one after the other. */
function* snapshots(page: Page): Generator<Snapshot> {
  let s: Value = {};
  for (const { set = {}, lists = {} } of page.steps) {
    s = { ...s };
    for (const [name, value] of Object.entries(set)) {
      // The state and the plan are null if there is none; other members are absent.
      if (value === null && name !== "state" && name !== "plan") delete s[name];
      else s[name] = value;
    }
    for (const [name, { len, items = {} }] of Object.entries(lists)) {
      const list = (s[name] as unknown[]).slice(0, len);
      for (const [i, item] of Object.entries(items)) list[Number(i)] = item;
      s[name] = list;
    }
    yield s as unknown as Snapshot;
  }
}

/** Folds a log as of increasing offsets. It continues from the last offset, or from the start after a jump. */
class Follower {
  private fold = new Conversation().keep();
  private next = 0;
  private readonly events: Event[];
  private readonly timeline: Timeline;

  constructor(events: Event[]) {
    this.events = events;
    this.timeline = new Timeline(events.map(jumpOf).filter((j) => j !== undefined));
  }

  snapshot(at: number): Snapshot {
    if (this.events.slice(this.next, at).some(jumpOf)) {
      this.fold = new Conversation().keep();
      this.next = 0;
    }
    this.fold.follow(this.timeline, at);
    for (; this.next < at; this.next++) this.fold.apply(this.events[this.next]!);
    return this.fold.snapshot();
  }
}

/**
 * Whether two JSON values are the same; a member that is undefined counts as
 * absent. It may report false for values that `comparable` makes the same.
 */
function same(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    for (let i = 0; i < a.length; i++) if (!same(a[i], b[i])) return false;
    return true;
  }
  const [x, y] = [a as Value, b as Value];
  for (const name of Object.keys(x)) {
    if (x[name] !== undefined && !(Object.hasOwn(y, name) && same(x[name], y[name]))) return false;
  }
  for (const name of Object.keys(y)) if (y[name] !== undefined && x[name] === undefined) return false;
  return true;
}

/** The snapshot as JSON. It replaces half surrogate pairs, which may remain in values that no view reads as text. */
const comparable = (s: Snapshot): Snapshot =>
  JSON.parse(JSON.stringify(s).replace(/\\ud[89a-f][0-9a-f]{2}/g, "\ufffd"));

test.skipIf(!hasGo)("random logs fold as they do in the server", { timeout: 600_000 }, async () => {
  let [seen, compared] = [0, 0];
  for await (const page of pages(first, logs)) {
    const follower = new Follower(page.events);
    for (const want of snapshots(page)) {
      const got = follower.snapshot(want.at);
      compared++;
      if (same(got, want)) continue;
      expect(comparable(got), `log ${page.seed} as of ${want.at}`).toEqual(comparable(want));
    }
    seen++;
  }
  expect(seen).toBe(logs);
  expect(compared).toBeGreaterThan(20 * logs);
});
