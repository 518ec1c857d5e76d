import type { Gap } from "@/fold/types";

/**
 * Where a moment is on the seek bar. The axis is of real time, or has idle
 * times cut to a short piece, so that what happens has room.
 */
export interface Axis {
  from: number; // milliseconds since 1970
  to: number;
  /** 0 to 1, of a time. */
  place(ms: number): number;
  /** The time at a place. */
  time(place: number): number;
  gaps: Stretch[];
}

export interface Stretch {
  from: number;
  to: number;
  ms: number;
}

/** The part of all active time that a cut gap is wide. */
const cutShare = 0.03;

export function axisOf(from: number, to: number, gaps: Gap[], cut: boolean): Axis {
  const end = Math.max(to, from + 1);
  const stretches = gaps
    .map((g) => ({ from: Math.max(from, Date.parse(g.from)), to: Math.min(end, Date.parse(g.to)), ms: g.ms }))
    .filter((g) => g.to > g.from)
    .sort((a, b) => a.from - b.from);
  const idle = stretches.reduce((sum, g) => sum + g.to - g.from, 0);
  const piece = cut ? Math.max(500, (end - from - idle) * cutShare) : Number.POSITIVE_INFINITY;
  const knots = knotsOf(from, end, stretches, piece);
  const length = knots.at(-1)?.x ?? 1;
  return {
    from,
    to: end,
    gaps: stretches,
    place: (ms) => between(knots, "t", "x", ms) / length,
    time: (place) => between(knots, "x", "t", place * length),
  };
}

/** The part of an axis between two of its places. */
export function zoomed(axis: Axis, [from, to]: Span): Axis {
  const width = to - from;
  if (width >= 1) return axis;
  return { ...axis, place: (ms) => (axis.place(ms) - from) / width, time: (place) => axis.time(from + place * width) };
}

/** Two places of an axis, from 0 to 1. */
export type Span = readonly [from: number, to: number];

export const wholeSpan: Span = [0, 1];
const narrowest = 1 / 2000;

/** Another width, so that what is at a place of the span stays where it is; or the same, moved. */
export function zoom([from, to]: Span, place: number, factor: number, move = 0): Span {
  const width = Math.min(1, Math.max(narrowest, (to - from) * factor));
  const start = from + place * (to - from - width) + move * width;
  const left = Math.min(1 - width, Math.max(0, start));
  return width >= 1 ? wholeSpan : [left, left + width];
}

interface Knot {
  t: number;
  x: number;
}

function knotsOf(from: number, to: number, gaps: Stretch[], piece: number): Knot[] {
  const knots: Knot[] = [{ t: from, x: 0 }];
  let last: Knot = { t: from, x: 0 };
  const add = (t: number, width: number) => {
    last = { t, x: last.x + width };
    knots.push(last);
  };
  for (const g of gaps) {
    if (g.from < last.t) continue;
    add(g.from, g.from - last.t);
    add(g.to, Math.min(piece, g.to - g.from));
  }
  add(to, Math.max(0, to - last.t));
  return knots;
}

/** Goes from one measure to the other on the straight line between two knots. */
function between(knots: Knot[], a: "t" | "x", b: "t" | "x", value: number): number {
  let low = 0;
  let high = knots.length - 1;
  while (high - low > 1) {
    const mid = (low + high) >> 1;
    if ((knots[mid] as Knot)[a] <= value) low = mid;
    else high = mid;
  }
  const p = knots[low] as Knot;
  const q = knots[high] as Knot;
  const share = q[a] === p[a] ? 0 : Math.min(1, Math.max(0, (value - p[a]) / (q[a] - p[a])));
  return p[b] + share * (q[b] - p[b]);
}

/** How much of a time nothing happened in, from 0 to 1. */
export function idleShare(ms: number, gaps: Gap[]): number {
  return ms > 0 ? gaps.reduce((sum, g) => sum + g.ms, 0) / ms : 0;
}
