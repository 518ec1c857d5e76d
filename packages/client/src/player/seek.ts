import type { Event, OffsetRange, ReplayIndex } from "../fold/types.ts";

// Events that begin an item or bring a part of it: a step does not stop there.
const pieces = /_(?:CONTENT|ARGS|START|STARTED|CHUNK)$/;
const alsoSkipped = new Set([
  "usage.reported",
  "agent.started",
  "agent.linked",
  "terminal.output",
  "terminal.input",
  "presence.moved",
  "RAW",
]);

/** Whether a step through the session stops after an event. */
export function isStep(e: Event): boolean {
  return !pieces.test(e.type) && !alsoSkipped.has(e.type);
}

/**
 * Estimates the offset at a position in the recording: a range that contains it, and a
 * guess inside that range.
 */
export function offsetNear(ms: number, index: ReplayIndex | undefined, head: number): OffsetRange & { guess: number } {
  const { from_ms, width_ms, counts } = index?.density ?? { from_ms: 0, width_ms: 0, counts: [] };
  if (!index || width_ms <= 0) return { from: 0, to: head, guess: Math.floor(head / 2) };
  const slot = (ms - from_ms) / width_ms;
  const n = Math.max(0, Math.min(Math.floor(slot), counts.length));
  const before = Math.min(index.from + counts.slice(0, n).reduce((a, b) => a + b, 0), head);
  const to = n < counts.length - 1 ? Math.min(before + counts[n]!, head) : head; // later events may be in the last slot
  const share = Math.max(0, Math.min(slot - n, 1));
  return { from: before, to, guess: Math.floor(before + (to - before) * share) };
}
