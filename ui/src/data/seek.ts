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

/** The most events that are loaded to find a time among them. */
const widest = 4000;

/**
 * About where in the log a time is: the range of offsets in which it must be if
 * times only go forward, and what of that is worth loading.
 */
export function offsetNear(
  ms: number,
  index: ReplayIndex | undefined,
  head: number,
): OffsetRange & { load: OffsetRange } {
  let range = { from: 0, to: head };
  let share = 0;
  const { from, width_ms, counts } = index?.density ?? { from: "", width_ms: 0, counts: [] };
  if (index && width_ms > 0) {
    const slot = (ms - Date.parse(from)) / width_ms;
    const n = Math.max(0, Math.min(Math.floor(slot), counts.length));
    const before = index.from + counts.slice(0, n).reduce((a, b) => a + b, 0);
    range = { from: Math.min(before, head), to: n < counts.length ? Math.min(before + counts[n]!, head) : head };
    share = Math.max(0, Math.min(slot - n, 1));
  }
  const { from: first, to: last } = range;
  if (last - first <= widest) return { ...range, load: { from: Math.max(0, first - 1), to: last } };
  const middle = Math.floor(first + (last - first) * share);
  const load = { from: Math.max(first, middle - widest / 4), to: Math.min(last, middle + widest / 4) };
  return { ...load, load };
}
