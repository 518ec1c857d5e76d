import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { Clock, positionBy } from "./clock.ts";
import { fixtures } from "./fixtures.ts";
import type { Axis, Event, Gap, ReplayIndex, Stretch } from "./types.ts";

// The server's clock is tested with the same files: see view/clock_test.go.
const folder = new URL("../../../../view/testdata/clock/", import.meta.url);

interface Fixture {
  about: string;
  events: Event[];
  expected: {
    axis: Axis;
    first_at?: string;
    last_at?: string;
    last_offset: number;
    duration_ms: number;
    open_runs?: string[];
    has_ended?: boolean;
    positions: number[];
    stretches: Stretch[];
    gaps: Gap[];
  };
}

const files = readdirSync(folder).map((name) => ({
  name,
  ...(JSON.parse(readFileSync(new URL(name, folder), "utf8")) as Fixture),
}));

describe("the clock is the same as the server's", () => {
  expect(files.length).toBeGreaterThan(7);
  test.each(files)("$name: $about", ({ events, expected }) => {
    const c = new Clock();
    const positions: number[] = [];
    const stretches: number[] = [];
    const gaps: [number, boolean][] = [];
    for (const e of events) {
      const started = c.firstMs !== undefined;
      const s = c.apply(e);
      positions.push(c.durationMs);
      if (s.skipped || started !== (c.firstMs !== undefined)) stretches.push(e.offset);
      if (s.ms > 2000) gaps.push([s.ms, s.skipped]);
    }
    expect(positions).toEqual(expected.positions);
    expect(c.axis).toBe(expected.axis);
    expect(c.lastOffset).toBe(expected.last_offset);
    expect(c.firstMs).toEqual(expected.first_at && Date.parse(expected.first_at));
    expect(c.firstMs && c.lastMs).toEqual(expected.last_at && Date.parse(expected.last_at));
    expect([c.openRuns, c.hasEnded]).toEqual([expected.open_runs ?? [], expected.has_ended ?? false]);
    expect(stretches).toEqual(expected.stretches.map((s) => s.offset));
    expect(gaps).toEqual(expected.gaps.map((g) => [g.ms, g.skipped ?? false]));
  });
});

test.each(files)("a clock continues from an index, and stretches give the positions: $name", ({ events, expected }) => {
  let last = 0;
  events.forEach((e, i) => {
    if (e.channel === "session" || e.channel === "presence") return;
    last = Math.max(last, positionBy(expected.stretches, e));
    expect(last, `event ${i}`).toBe(expected.positions[i]);
  });
  const whole = new Clock();
  for (const e of events) whole.apply(e);
  expect({ ...Clock.from(expected as unknown as ReplayIndex) }).toEqual({ ...whole });
});

test("it reads any data", () => {
  for (const { events } of fixtures) {
    const c = new Clock();
    let last = 0;
    for (const e of events) {
      c.apply(e);
      expect(c.durationMs).toBeGreaterThanOrEqual(last);
      last = c.durationMs;
    }
  }
});
