import type { ReplayIndex, Status, ToolCall } from "@tapedeck/client";
import type { Hidden } from "../events/raw-events";
import { brief } from "../format";

/** A turn of the outline: an invocation, with what happened in it. */
export interface Turn {
  n: number;
  offset: number;
  startedAt: string;
  title: string;
  status: Status | undefined;
  ms: number | undefined;
  calls: number;
  failed: number;
}

/**
 * The turns that are active at the playhead. Turns come from the index, so also those are
 * there whose events are not loaded; calls are counted only as far as they are.
 */
export function turnsOf(index: ReplayIndex, at: number, hidden: Hidden[], calls: readonly ToolCall[]): Turn[] {
  const byTurn = new Map<string, { calls: number; failed: number }>();
  for (const call of calls) {
    const sum = byTurn.get(call.invocation ?? "") ?? { calls: 0, failed: 0 };
    sum.calls++;
    if (call.status === "failed") sum.failed++;
    byTurn.set(call.invocation ?? "", sum);
  }
  const before = index.earlier ?? 0;
  return index.invocations.flatMap((i, n) => {
    const reverted = hidden.some(
      (h) => i.first >= h.from && i.first < h.to && (h.thread === undefined || h.thread === i.thread),
    );
    if (i.first >= at || reverted) return [];
    const over = i.last < at;
    return {
      n: before + n + 1,
      offset: i.first,
      startedAt: i.started_at,
      title: brief(i.title ?? "", 200),
      status: over ? i.status : "running",
      ms: over && i.ended_at ? Date.parse(i.ended_at) - Date.parse(i.started_at) : undefined,
      ...(byTurn.get(i.invocation) ?? { calls: 0, failed: 0 }),
    };
  });
}
