import { expect, test } from "vitest";
import { turns } from "../player/fake.ts";
import { Conversation } from "./conversation.ts";
import { fixtures, followed, plain } from "./fixtures.ts";
import { window } from "./thread.ts";
import { jumpOf, Timeline } from "./timeline.ts";
import type { Snapshot } from "./types.ts";

test("a fold has only the newest messages in memory, or all of them after keep", () => {
  const [short, long] = [new Conversation(), new Conversation().keep()];
  for (const e of turns(200)) for (const c of [short, long]) c.apply(e);
  const [s, l] = [short.snapshot(), long.snapshot()];
  expect(s.messages).toHaveLength(window);
  expect(s.earlier).toBe(400 - window);
  expect(s.threads[0]!.messages).toBe(400);
  expect(l.messages).toHaveLength(400);
  expect(l.earlier).toBeUndefined();
  expect(plain({ ...l, messages: l.messages.slice(-window), runs: l.runs.slice(-window) })).toEqual(
    plain({ ...s, earlier: undefined }),
  );
});

test("trimmed messages count as earlier, and copies still have them", () => {
  const c = new Conversation().keep();
  for (const e of turns(200)) c.apply(e);
  const before = c.clone();
  c.trim(136); // 272 messages have settled: not more than twice 136
  expect(c.snapshot()).toEqual(before.snapshot());
  c.trim(100);
  const s = c.snapshot();
  expect(s.messages).toHaveLength(100 + window);
  expect(s.earlier).toBe(400 - 100 - window);
  expect(s.messages.at(-1)).toEqual(before.snapshot().messages.at(-1));
  expect(before.snapshot().messages).toHaveLength(400);
});

test("copies that diverge do not affect each other", () => {
  const events = turns(200);
  const base = new Conversation().keep();
  for (const e of events.slice(0, 1500)) base.apply(e);
  const [a, b] = [base.clone(), base.clone()];
  for (const e of events.slice(1500)) a.apply(e);
  for (const e of events.slice(1500)) {
    const data = e.data?.delta === undefined ? e.data : { ...e.data, delta: "other " };
    b.apply({ ...e, data });
  }
  const want = new Conversation().keep();
  for (const e of events) want.apply(e);
  expect(a.snapshot()).toEqual(want.snapshot());
  expect(b.snapshot().messages.at(-1)!.text).toBe("other other other other ");
  expect(base.snapshot().at).toBe(1500);
});

/** The parts that do not depend on what a snapshot leaves out. */
function known(s: Snapshot) {
  const { state, plan, notes, ...rest } = plain(s);
  return rest;
}

test.each(fixtures)("a fold continues from any snapshot: $name", (f) => {
  const timeline = new Timeline(f.events.map(jumpOf).filter((j) => j !== undefined));
  const head = (f.events.at(-1)?.offset ?? -1) + 1;
  const all = followed(f.events);
  for (const e of f.events) all.apply(e);
  for (let cut = 0; cut <= f.events.length; cut++) {
    const at = f.events[cut]?.offset ?? head;
    if (!timeline.continues(at, head)) continue;
    const first = followed(f.events, at);
    for (const e of f.events.slice(0, cut)) first.apply(e);
    const c = Conversation.from(JSON.parse(JSON.stringify(first.snapshot())));
    c.follow(timeline, head);
    for (const e of f.events.slice(cut)) c.apply(e);
    expect(known(c.snapshot()), `from ${at}`).toEqual(known(all.snapshot()));
  }
});
