import type { Event, OffsetRange, ReplayIndex } from "../fold/types";

// Events that bring a piece of something, or begin it: there is nothing to stop at.
const pieces = /_(?:CONTENT|ARGS|START|STARTED|CHUNK)$/;
const more = new Set([
  "usage.reported",
  "agent.started",
  "agent.linked",
  "terminal.output",
  "terminal.input",
  "presence.moved",
  "RAW",
]);

/** Whether a person who steps through a session wants to stop after an event. */
export function isStep(e: Event): boolean {
  return !pieces.test(e.type) && !more.has(e.type);
}

/**
 * About where in the log a time is: the range of offsets in which it must be if
 * times only go forward, and a guess.
 */
export function offsetNear(ms: number, index: ReplayIndex | undefined, head: number): OffsetRange & { guess: number } {
  const { from, width_ms, counts } = index?.density ?? { from: "", width_ms: 0, counts: [] };
  if (!index || width_ms <= 0) return { from: 0, to: head, guess: Math.floor(head / 2) };
  const slot = (ms - Date.parse(from)) / width_ms;
  const n = Math.max(0, Math.min(Math.floor(slot), counts.length));
  const before = Math.min(index.from + counts.slice(0, n).reduce((a, b) => a + b, 0), head);
  const to = n < counts.length ? Math.min(before + counts[n]!, head) : head;
  const share = Math.max(0, Math.min(slot - n, 1));
  return { from: before, to, guess: Math.floor(before + (to - before) * share) };
}
