import { describe, expect, it } from "vitest";
import { axisOf, idleShare, positionOf, wholeSpan, zoom, zoomed } from "./axis";

const gap = (from: number, to: number) => ({ after_offset: 0, from: "", to: "", ms: to - from, position_ms: from });

describe("axisOf", () => {
  const gaps = [gap(60_000, 90_000), gap(10_000, 50_000)];

  it("shows real time unless idle times are shortened", () => {
    const axis = axisOf("time", 100_000, gaps, false);
    for (const t of [0, 10_000, 30_000, 75_000, 100_000]) expect(axis.place(t)).toBeCloseTo(t / 100_000);
  });

  it("gives activity more space when idle times are shortened", () => {
    const axis = axisOf("time", 100_000, gaps, true);
    expect(axis.place(10_000)).toBeGreaterThan(0.25);
    expect(axis.place(50_000) - axis.place(10_000)).toBeLessThan(0.05);
  });

  it.each([false, true])("converts times to positions and back (shortened: %s)", (cut) => {
    const axis = axisOf("time", 100_000, gaps, cut);
    for (let t = 0; t <= 100_000; t += 1_700) expect(axis.position(axis.place(t))).toBeCloseTo(t, 3);
    let last = -1;
    for (let t = 0; t <= 100_000; t += 500) {
      expect(axis.place(t)).toBeGreaterThan(last);
      last = axis.place(t);
    }
  });

  it("gives skipped silences a place and no length", () => {
    const axis = axisOf("time", 100_000, [gap(10_000, 20_000), { ...gap(50_000, 9e9), skipped: true }], true);
    expect(axis.skips).toEqual([{ at: 50_000, ms: 9e9 - 50_000 }]);
    expect(axis.gaps).toEqual([{ from: 10_000, to: 20_000, ms: 10_000 }]);
    expect(axis.position(1)).toBe(100_000);
  });

  it("counts events if they have no times", () => {
    const axis = axisOf("events", 40, gaps, true);
    expect([axis.place(10), axis.position(0.5), axis.gaps, axis.skips]).toEqual([0.25, 20, [], []]);
    const m = { offset: 7, kind: "user", at: "", position_ms: 300, thread: "main" } as const;
    expect([positionOf(m, "events"), positionOf(m, "time")]).toEqual([8, 300]);
  });

  it("stays within the bar for any input", () => {
    const axis = axisOf("time", 0, [], true);
    for (const t of [-5, 1000, 9e15]) {
      expect(axis.place(t)).toBeGreaterThanOrEqual(0);
      expect(axis.place(t)).toBeLessThanOrEqual(1);
    }
    expect(axis.position(7)).toBe(1);
  });
});

it("computes the idle share of a session", () => {
  const left = { ...gap(60_000, 9e9), skipped: true };
  expect(idleShare({ duration_ms: 100_000, gaps: [gap(0, 60_000), left] })).toBeCloseTo(0.6);
  expect(idleShare({ duration_ms: 0, gaps: [] })).toBe(0);
  expect(idleShare(undefined)).toBe(0);
});

it("zooms at the pointer, moves, and returns to the whole", () => {
  const near = zoom(wholeSpan, 0.5, 0.5);
  expect(near).toEqual([0.25, 0.75]);
  expect(zoom(near, 0, 0.5)).toEqual([0.25, 0.5]);
  expect(zoom(near, 0.5, 1, 0.5)).toEqual([0.5, 1]);
  expect(zoom(near, 0.5, 1, 3)).toEqual([0.5, 1]);
  expect(zoom(near, 0.2, 5)).toBe(wholeSpan);
  const axis = zoomed(axisOf("time", 1000, [], false), near);
  expect([axis.place(250), axis.place(500), axis.place(1000)]).toEqual([0, 0.5, 1.5]);
  expect(axis.position(0.5)).toBe(500);
});
