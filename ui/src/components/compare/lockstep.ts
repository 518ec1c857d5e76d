import type { Diff } from "@tapedeck/client";
import { beginsTheSame, partingOf } from "./parts";

/** The stops of a side: the offset of its first item that differs, then the end of each turn. */
export function stopsOf(diff: Diff, side: "a" | "b"): number[] {
  const end = diff[side].at;
  const starts = diff.turns.map((t) => t[side]?.offset);
  const stops: number[] = [];
  for (let n = 0; n <= starts.length; n++) stops.push(starts.slice(n).find((o) => o !== undefined) ?? end);
  // A side that has nothing else than what is the same has nothing to play in this turn.
  if (beginsTheSame(diff)) stops[0] = partingOf(diff, side) ?? stops[1] ?? end;
  return stops;
}

/** The length and idle gaps of a side, in milliseconds since the sides diverged. */
export interface Pace {
  length: number;
  gaps: { from: number; to: number }[];
}

/** The playing time of both sides. */
export function lengthOf(paces: Pace[]): number {
  return Math.max(0, ...paces.map((p) => p.length));
}

/** The next time, from a given one on, at which a side is active. */
export function skipIdle(ms: number, paces: Pace[]): number {
  const next = paces.map((p) => {
    if (ms >= p.length) return Number.POSITIVE_INFINITY; // this side has ended
    const gap = p.gaps.find((g) => g.from <= ms && ms < g.to);
    return gap ? gap.to : ms;
  });
  const first = Math.min(...next);
  return Number.isFinite(first) ? first : lengthOf(paces);
}
