import { expect, test } from "vitest";
import { jumpOf, Timeline } from "./timeline.ts";
import type { Event, Jump } from "./types.ts";

const jump = (offset: number, to: number, thread = ""): Jump => ({
  offset,
  to,
  thread,
  marker: `m${offset}`,
  previous: 0,
});

/** The definition, taken literally: E(log + jump) = E(log[0:to]). */
function activeOffsets(jumps: Jump[], thread: string, at: number): number[] {
  const states: number[][] = [[]]; // by offset
  for (let offset = 0; offset < at; offset++) {
    const j = jumps.find((one) => one.offset === offset);
    if (j && (j.thread === "" || j.thread === thread)) states.push(states[j.to]!);
    else states.push(j ? states[offset]! : [...states[offset]!, offset]);
  }
  return states[at]!;
}

/** Pseudo-random numbers below n, the same in each run. */
function numbers(seed: number): (n: number) => number {
  let state = seed;
  return (n) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return Math.floor((state / 2 ** 31) * n);
  };
}

/** Faster than toEqual, which is called too often here. */
function expectSame(got: number[], want: number[]): void {
  if (got.join() !== want.join()) expect(got).toEqual(want);
}

test("the active events are those that are left after the jumps", () => {
  const next = numbers(7);
  for (let round = 0; round < 60; round++) {
    const jumps: Jump[] = [];
    for (let offset = 1; offset < 30; offset++) {
      if (next(5) === 0) jumps.push(jump(offset, next(offset + 1), ["", "main", "side"][next(3)]));
    }
    const t = new Timeline(jumps);
    for (const thread of ["main", "side"]) {
      for (let at = 0; at <= 30; at++) {
        const want = activeOffsets(jumps, thread, at);
        const isEvent = (offset: number) => !jumps.some((j) => j.offset === offset);
        const all = Array.from({ length: 30 }, (_, i) => i).filter(isEvent);
        expectSame(
          all.filter((offset) => t.has(offset, thread, at)),
          want,
        );
        const ranged = t.ranges(thread, at).flatMap((r) => all.filter((o) => o >= r.from && o < r.to));
        expectSame(ranged, want);
        for (let from = 0; from <= at; from++) {
          if (!t.continues(from, at)) continue;
          expectSame(
            want.filter((o) => o < from),
            activeOffsets(jumps, thread, from),
          );
        }
      }
    }
  }
});

test("an invalid jump does no harm", () => {
  const event = (type: string, data: Event["data"]): Event => ({
    offset: 5,
    type,
    channel: "session",
    timestamp: "",
    data,
  });
  expect(jumpOf(event("session.rewound", { toOffset: 99, previous: 7, marker: 3 }))).toEqual({
    offset: 5,
    to: 5,
    thread: "",
    marker: "",
    previous: 0,
  });
  expect(jumpOf(event("session.overwritten", { fromOffset: -3, thread: "t" }))).toMatchObject({ to: 0, thread: "t" });
  expect(jumpOf(event("session.cleared", { toOffset: 4 }))).toMatchObject({ to: 0 });
  expect(jumpOf(event("session.renamed", {}))).toBeUndefined();
});
