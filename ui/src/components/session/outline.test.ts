import type { IndexedInvocation, ReplayIndex, ToolCall } from "@tapedeck/client";
import { expect, it } from "vitest";
import { turnsOf } from "./outline";

const invocation = (id: string, first: number, last: number, more: Partial<IndexedInvocation> = {}) => ({
  invocation: id,
  thread: "main",
  first,
  last,
  started_at: "2026-01-05T12:00:00Z",
  ended_at: "2026-01-05T12:00:03Z",
  status: "complete" as const,
  title: `task ${id}`,
  ...more,
});
const index = (...invocations: IndexedInvocation[]) => ({ invocations, earlier: 4 }) as unknown as ReplayIndex;
const call = (id: string, status: "complete" | "failed") => ({ invocation: id, status }) as ToolCall;

it("has the turns with their number, their calls and their duration", () => {
  const turns = turnsOf(
    index(invocation("a", 1, 9), invocation("b", 10, 19)),
    20,
    [],
    [call("a", "complete"), call("a", "failed")],
  );
  expect(turns).toMatchObject([
    { n: 5, offset: 1, title: "task a", status: "complete", ms: 3000, calls: 2, failed: 1 },
    { n: 6, offset: 10, calls: 0, failed: 0 },
  ]);
});

it("leaves out what is later than the playhead or reverted, and shows an open turn as running", () => {
  const all = index(invocation("a", 1, 9), invocation("b", 10, 19), invocation("c", 21, 29));
  expect(turnsOf(all, 15, [], []).map((t) => [t.n, t.status, t.ms])).toEqual([
    [5, "complete", 3000],
    [6, "running", undefined],
  ]);
  expect(turnsOf(all, 30, [{ from: 10, to: 20, thread: undefined }], []).map((t) => t.n)).toEqual([5, 7]);
  expect(turnsOf(all, 30, [{ from: 10, to: 20, thread: "other" }], []).map((t) => t.n)).toEqual([5, 6, 7]);
});
