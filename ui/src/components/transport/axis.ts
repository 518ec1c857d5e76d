import type { Gap, Marker, ReplayIndex } from "@tapedeck/client";

type Kind = ReplayIndex["axis"];

/**
 * Maps positions in a session to places on the seek bar. Positions are milliseconds of
 * the recording, or numbers of events if these have no times. The axis may shorten idle
 * times, so that activity gets more space.
 */
export interface Axis {
  kind: Kind;
  length: number; // the last position; the first is 0
  /** The place of a position, from 0 to 1. */
  place(position: number): number;
  /** The position at a place. */
  position(place: number): number;
  gaps: Idle[];
  skips: { at: number; ms: number }[]; // silences that take no time in the recording
}

export interface Idle {
  from: number;
  to: number;
  ms: number;
}

/** How far a small step of the playhead goes: five seconds, or an event. */
export const smallStep = (kind: Kind): number => (kind === "time" ? 5_000 : 1);

/** The position of a marker: the playhead is behind its event. */
export const positionOf = (m: Marker, kind: Kind): number => (kind === "time" ? m.position_ms : m.offset + 1);

/** The width of a shortened gap, as a share of the active time. */
const cutShare = 0.03;

export function axisOf(kind: Kind, to: number, gaps: Gap[], cut: boolean): Axis {
  const length = Math.max(to, 1);
  const timed = kind === "time" ? gaps : [];
  const idles = timed
    .filter((g) => !g.skipped)
    .map((g) => ({ from: g.position_ms, to: Math.min(length, g.position_ms + g.ms), ms: g.ms }))
    .filter((g) => g.to > g.from)
    .sort((a, b) => a.from - b.from);
  const idle = idles.reduce((sum, g) => sum + g.to - g.from, 0);
  const piece = cut ? Math.max(500, (length - idle) * cutShare) : Number.POSITIVE_INFINITY;
  const knots = knotsOf(length, idles, piece);
  const width = knots.at(-1)?.x ?? 1;
  return {
    kind,
    length,
    gaps: idles,
    skips: timed.filter((g) => g.skipped).map((g) => ({ at: g.position_ms, ms: g.ms })),
    place: (position) => between(knots, "t", "x", position) / width,
    position: (place) => between(knots, "x", "t", place * width),
  };
}

/** A part of an axis, stretched to the whole bar. */
export function zoomed(axis: Axis, [from, to]: Span): Axis {
  const width = to - from;
  if (width >= 1) return axis;
  return {
    ...axis,
    place: (position) => (axis.place(position) - from) / width,
    position: (place) => axis.position(from + place * width),
  };
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

function knotsOf(to: number, gaps: Idle[], piece: number): Knot[] {
  const knots: Knot[] = [{ t: 0, x: 0 }];
  let last: Knot = { t: 0, x: 0 };
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

/** Converts between position (t) and place (x) by linear interpolation between two knots. */
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

/** The idle share of a recording, from 0 to 1. */
export function idleShare(index: Pick<ReplayIndex, "duration_ms" | "gaps"> | undefined): number {
  if (!index || index.duration_ms <= 0) return 0;
  return index.gaps.reduce((sum, g) => sum + (g.skipped ? 0 : g.ms), 0) / index.duration_ms;
}
