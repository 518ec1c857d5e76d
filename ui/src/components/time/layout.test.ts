import type { SessionEntry } from "@tapedeck/client";
import { expect, it } from "vitest";
import { agentLanes, barAt, fitRange, heightOf, inRange, moved, spanOf, ticksOf, topOf, zoomed } from "./layout";

const start = Date.parse("2026-01-05T12:00:00Z");
const at = (s: number) => new Date(start + s * 1000).toISOString();

function session(id: string, from: number, to: number, more: Partial<SessionEntry> = {}): SessionEntry {
  return {
    id,
    kind: "session",
    created_at: at(from),
    updated_at: at(to + 500_000_000), // a bookmark, much later
    summary: {
      started_at: at(from),
      updated_at: at(to),
      axis: "time",
      recording_ms: (to - from) * 1000,
    } as SessionEntry["summary"],
    head: 1,
    status: "complete",
    agent: "a",
    ...more,
  };
}

it("has a lane for each agent, and puts simultaneous sessions in different rows", () => {
  const lanes = agentLanes(
    [session("1", 0, 10), session("2", 5, 15), session("3", 11, 20), session("4", 0, 9, { agent: "b" })],
    start,
    1,
  );
  expect(lanes.map((l) => [l.agent, l.rows, l.bars.map((b) => `${b.session.id}@${b.row}`).join(" ")])).toEqual([
    ["a", 2, "1@0 2@1 3@0"],
    ["b", 1, "4@0"],
  ]);
  expect(lanes[1]?.top).toBeGreaterThan(lanes[0]?.top as number);
  expect(heightOf(lanes)).toBeGreaterThan(lanes[1]?.top as number);
});

it("extends running sessions up to now, and finds the bar at a position", () => {
  const now = start + 60_000;
  const lanes = agentLanes([session("r", 0, 1, { status: "running" }), session("s", 0, 0)], now, 100);
  const lane = lanes[0];
  const bar = lane?.bars.find((b) => b.session.id === "r");
  if (!lane || !bar) throw new Error("no bar");
  expect(bar.to).toBe(now);
  expect(barAt(lanes, start + 30_000, topOf(lane, bar) + 3, 100)?.session.id).toBe("r");
  // a very short session has the minimum width
  expect(barAt(lanes, start + 700, topOf(lane, lane.bars[1] as typeof bar) + 3, 100)?.session.id).toBe("s");
  expect(barAt(lanes, start + 5_000, topOf(lane, lane.bars[1] as typeof bar) + 3, 100)).toBeUndefined();
  expect(inRange(lane, { from: start + 20_000, to: now }, 100).map((b) => b.session.id)).toEqual(["r"]);
});

it("shows a session without a conversation where it was created", () => {
  const s = session("n", 5, 5, { summary: undefined });
  expect(spanOf(s, start)).toEqual({ from: start + 5000, to: start + 5000 });
});

it("is fast and compact with thousands of simultaneous sessions", () => {
  const many = Array.from({ length: 5000 }, (_, i) => session(`s${i}`, 0, 100, { agent: `agent ${i % 3}` }));
  const lanes = agentLanes(many, start, 1000);
  expect(lanes.map((l) => l.rows)).toEqual([24, 24, 24]);
});

it("zooms around a position, moves, and fits", () => {
  const range = { from: start, to: start + 100_000 };
  expect(zoomed(range, 0.5, 0.25)).toEqual({ from: start + 12_500, to: start + 62_500 });
  expect(zoomed(range, 1e-9).to - zoomed(range, 1e-9).from).toBe(2000);
  expect(moved(range, -0.1)).toEqual({ from: start - 10_000, to: start + 90_000 });
  const all = fitRange([session("1", 0, 10), session("2", 600, 700)], start + 700_000);
  expect(all.from).toBeLessThan(start);
  expect(all.to).toBeGreaterThan(start + 700_000);
  const none = fitRange([], start);
  expect(none.to - none.from).toBeGreaterThan(60_000);
});

it("has ticks at round times", () => {
  const ticks = ticksOf({ from: start + 30_000, to: start + 30 * 60_000 }, 4 * 60_000);
  expect(ticks.map((t) => (t.at - start) / 60_000)).toEqual([5, 10, 15, 20, 25]);
  expect(new Set(ticks.map((t) => t.label)).size).toBe(5);
});
