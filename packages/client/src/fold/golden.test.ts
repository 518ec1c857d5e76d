import { describe, expect, test } from "vitest";
import { Conversation } from "./conversation.ts";
import { fixtures, followed, plain } from "./fixtures.ts";
import type { Event } from "./types.ts";

function fold(events: Event[]): Conversation {
  const c = followed(events);
  for (const e of events) c.apply(e);
  return c;
}

describe("the fold gives the same result as the server's", () => {
  expect(fixtures.length).toBeGreaterThan(10);
  test.each(fixtures)("$name: $about", (f) => {
    expect(plain(fold(f.events).snapshot(f.thread))).toEqual(f.snapshot);
  });
});

describe("a copy is independent", () => {
  test.each(fixtures)("$name", (f) => {
    for (let cut = 0; cut <= f.events.length; cut++) {
      const c = followed(f.events);
      for (const e of f.events.slice(0, cut)) c.apply(e);
      const then = plain(c.snapshot(f.thread));
      const copy = c.clone();
      for (const e of f.events.slice(cut)) copy.apply(e);
      expect(plain(copy.snapshot(f.thread))).toEqual(f.snapshot);
      expect(plain(c.snapshot(f.thread))).toEqual(then);
      for (const e of f.events.slice(cut)) c.apply(e);
      expect(plain(c.snapshot(f.thread))).toEqual(f.snapshot);
    }
  });
});

test("unchanged items stay the same object", () => {
  const f = fixtures.find((one) => one.name === "text.json")!;
  const c = new Conversation();
  for (const e of f.events) c.apply(e);
  const [a, b] = [c.snapshot(), c.clone().snapshot()];
  expect(a.messages.length).toBeGreaterThan(0);
  a.messages.forEach((m, i) => {
    expect(b.messages[i]).toBe(m);
  });
});
