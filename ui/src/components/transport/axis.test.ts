import { describe, expect, it } from "vitest";
import { axisOf, idleShare, wholeSpan, zoom, zoomed } from "./axis";

const iso = (ms: number) => new Date(ms).toISOString();
const gap = (from: number, to: number) => ({ after_offset: 0, from: iso(from), to: iso(to), ms: to - from });

describe("axisOf", () => {
  const gaps = [gap(60_000, 90_000), gap(10_000, 50_000)];

  it("shows real time unless idle times are shortened", () => {
    const axis = axisOf(0, 100_000, gaps, false);
    for (const t of [0, 10_000, 30_000, 75_000, 100_000]) expect(axis.place(t)).toBeCloseTo(t / 100_000);
  });

  it("gives activity more space when idle times are shortened", () => {
    const axis = axisOf(0, 100_000, gaps, true);
    expect(axis.place(10_000)).toBeGreaterThan(0.25);
    expect(axis.place(50_000) - axis.place(10_000)).toBeLessThan(0.05);
  });

  it.each([false, true])("converts times to positions and back (shortened: %s)", (cut) => {
    const axis = axisOf(0, 100_000, gaps, cut);
    for (let t = 0; t <= 100_000; t += 1_700) expect(axis.time(axis.place(t))).toBeCloseTo(t, 3);
    let last = -1;
    for (let t = 0; t <= 100_000; t += 500) {
      expect(axis.place(t)).toBeGreaterThan(last);
      last = axis.place(t);
    }
  });

  it("stays within the bar for any input", () => {
    const axis = axisOf(1000, 1000, [], true);
    for (const t of [-5, 1000, 9e15]) {
      expect(axis.place(t)).toBeGreaterThanOrEqual(0);
      expect(axis.place(t)).toBeLessThanOrEqual(1);
    }
    expect(axis.time(7)).toBe(1001);
  });
});

it("computes the idle share of a session", () => {
  expect(idleShare(100_000, [gap(0, 60_000)])).toBeCloseTo(0.6);
  expect(idleShare(0, [])).toBe(0);
});

it("zooms at the pointer, moves, and returns to the whole", () => {
  const near = zoom(wholeSpan, 0.5, 0.5);
  expect(near).toEqual([0.25, 0.75]);
  expect(zoom(near, 0, 0.5)).toEqual([0.25, 0.5]);
  expect(zoom(near, 0.5, 1, 0.5)).toEqual([0.5, 1]);
  expect(zoom(near, 0.5, 1, 3)).toEqual([0.5, 1]);
  expect(zoom(near, 0.2, 5)).toBe(wholeSpan);
  const axis = zoomed(axisOf(0, 1000, [], false), near);
  expect([axis.place(250), axis.place(500), axis.place(1000)]).toEqual([0, 0.5, 1.5]);
  expect(axis.time(0.5)).toBe(500);
});
