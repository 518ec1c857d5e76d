import type { Diff } from "@/data/diff";

/** A side as it is played: offsets at which its turns end, the first of them where the two part. */
export function stopsOf(diff: Diff, side: "a" | "b"): number[] {
  const end = diff[side].at;
  const starts = diff.turns.map((t) => t[side]?.offset);
  const stops: number[] = [];
  for (let n = 0; n <= starts.length; n++) stops.push(starts.slice(n).find((o) => o !== undefined) ?? end);
  return stops;
}

/** When something happens on a side, in milliseconds since the two parted. */
export interface Pace {
  length: number;
  gaps: { from: number; to: number }[];
}

/** How long it takes to play both. */
export function lengthOf(paces: Pace[]): number {
  return Math.max(0, ...paces.map((p) => p.length));
}

/** Where to go on from a time at which nothing happens on either side; the time itself if something does. */
export function busyFrom(ms: number, paces: Pace[]): number {
  const next = paces.map((p) => {
    if (ms >= p.length) return Number.POSITIVE_INFINITY; // it is over
    const gap = p.gaps.find((g) => g.from <= ms && ms < g.to);
    return gap ? gap.to : ms;
  });
  const first = Math.min(...next);
  return Number.isFinite(first) ? first : lengthOf(paces);
}
