import type { Diff, DiffSide } from "@tapedeck/client";
import { expect, it } from "vitest";
import { lengthOf, skipIdle, stopsOf } from "./lockstep";

const side = (offset: number): DiffSide => ({ offset, thread: "main", messages: [], tools: [] });
const turn = (n: number, a?: number, b?: number) => ({
  turn: n,
  same: false,
  a: a === undefined ? null : side(a),
  b: b === undefined ? null : side(b),
});

const diff: Diff = {
  a: { id: "a", at: 40, turns: 4 },
  b: { id: "b", at: 26, turns: 3 },
  shared_offset: 13,
  common_turns: 2,
  same: false,
  turns: [turn(3, 13, 14), turn(4, 30), turn(5, 35)],
};

it("stops at the end of each turn, and a side without further turns stays at its end", () => {
  expect(stopsOf(diff, "a")).toEqual([13, 30, 35, 40]);
  expect(stopsOf(diff, "b")).toEqual([14, 26, 26, 26]);
  expect(stopsOf({ ...diff, turns: [] }, "a")).toEqual([40]);
});

it("skips times in which both sides are idle", () => {
  const a = { length: 100, gaps: [{ from: 10, to: 50 }] };
  const b = { length: 60, gaps: [{ from: 20, to: 40 }] };
  expect(lengthOf([a, b])).toBe(100);
  expect(skipIdle(5, [a, b])).toBe(5);
  expect(skipIdle(15, [a, b])).toBe(15); // b is active
  expect(skipIdle(25, [a, b])).toBe(40); // when b is active again
  expect(skipIdle(70, [a, b])).toBe(70);
  expect(skipIdle(70, [{ ...a, gaps: [{ from: 65, to: 90 }] }, b])).toBe(90);
  expect(skipIdle(200, [a, b])).toBe(100);
});
