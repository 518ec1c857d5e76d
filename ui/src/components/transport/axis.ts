import type { Gap } from "@/fold/types";

/**
 * Maps times to positions on the seek bar. The axis shows real time, or shortens
 * idle times, so that activity gets more space.
 */
export interface Axis {
  from: number; // milliseconds since 1970
  to: number;
  /** The position of a time, from 0 to 1. */
  place(ms: number): number;
  /** The time at a position. */
  time(place: number): number;
  gaps: Stretch[];
}

export interface Stretch {
  from: number;
  to: number;
  ms: number;
}

/** The width of a shortened gap, as a share of the active time. */
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

/** A part of an axis, stretched to the whole bar. */
export function zoomed(axis: Axis, [from, to]: Span): Axis {
  const width = to - from;
  if (width >= 1) return axis;
  return { ...axis, place: (ms) => (axis.place(ms) - from) / width, time: (place) => axis.time(from + place * width) };
}

/** Two positions on an axis, from 0 to 1. */
export type Span = readonly [from: number, to: number];

export const wholeSpan: Span = [0, 1];
const minSpan = 1 / 2000;

/** Scales a span around a position in it, which stays in place, and moves it by `move` widths. */
export function zoom([from, to]: Span, place: number, factor: number, move = 0): Span {
  const width = Math.min(1, Math.max(minSpan, (to - from) * factor));
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

/** Converts between time (t) and position (x) by linear interpolation between two knots. */
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

/** The idle share of a duration, from 0 to 1. */
export function idleShare(ms: number, gaps: Gap[]): number {
  return ms > 0 ? gaps.reduce((sum, g) => sum + g.ms, 0) / ms : 0;
}
