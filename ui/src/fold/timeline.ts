import type { Event, Jump, OffsetRange } from "./types";

export const mainThread = "main";

/** What an event says that takes others back; undefined if it takes none. */
export function jumpOf(e: Event): Jump | undefined {
  let to = 0;
  const d = e.data ?? {};
  switch (e.type) {
    case "session.rewound":
      to = integer(d.toOffset);
      break;
    case "session.overwritten":
      to = integer(d.fromOffset);
      break;
    case "session.cleared":
      break;
    default:
      return undefined;
  }
  const previous = Math.max(integer(d.previous), 0);
  const j: Jump = {
    offset: e.offset,
    to: Math.min(Math.max(to, 0), e.offset),
    thread: typeof d.thread === "string" ? d.thread : "",
    marker: typeof d.marker === "string" ? d.marker : "",
    previous: previous >= e.offset ? 0 : previous,
  };
  if (Array.isArray(d.with)) j.with = d.with.filter((name) => typeof name === "string");
  return j;
}

/** Whether a thread goes back. */
export function takes(j: Jump, thread: string): boolean {
  return j.thread === "" || j.thread === thread || (j.with?.includes(thread) ?? false);
}

function integer(v: unknown): number {
  return Number.isSafeInteger(v) ? (v as number) : 0;
}

/**
 * Says which events are in force, with the jumps that a session has: those that
 * are left after all that lie below an offset. At a jump, what was in force is what
 * was in force before the event that it goes back to. A Timeline does not change.
 */
export class Timeline {
  readonly jumps: readonly Jump[]; // by offset

  constructor(jumps: readonly Jump[]) {
    this.jumps = [...jumps].sort((a, b) => a.offset - b.offset);
  }

  /** A timeline that has others, too; each counts once. */
  with(jumps: readonly Jump[]): Timeline {
    return new Timeline([...new Map([...this.jumps, ...jumps].map((j) => [j.offset, j])).values()]);
  }

  /** The newest jump below an offset that takes events of a thread back; of any if it is "". */
  before(thread: string, at: number): Jump | undefined {
    let i = this.place(at);
    for (i--; i >= 0; i--) {
      const j = this.jumps[i]!;
      if (thread === "" || takes(j, thread)) return j;
    }
    return undefined;
  }

  /** The index of the first jump at or after an offset. */
  private place(at: number): number {
    let low = 0;
    let high = this.jumps.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (this.jumps[mid]!.offset < at) low = mid + 1;
      else high = mid;
    }
    return low;
  }

  /** Where the events are that are in force in a thread as of an offset, oldest first. */
  ranges(thread: string, at: number): OffsetRange[] {
    const out: OffsetRange[] = [];
    while (at > 0) {
      const j = this.before(thread || mainThread, at);
      if (!j) {
        out.push({ from: 0, to: at });
        break;
      }
      if (j.offset + 1 < at) out.push({ from: j.offset + 1, to: at });
      at = j.to;
    }
    return out.reverse();
  }

  /** Whether the event at an offset, which is in thread, is in force as of an offset. */
  has(offset: number, thread: string, at: number): boolean {
    while (offset < at) {
      const j = this.before(thread || mainThread, at);
      if (!j || offset >= j.offset) return true;
      at = j.to;
    }
    return false;
  }

  /**
   * Whether a fold of what was in force as of one offset can go on to a later one:
   * nothing that is in it was taken back between, and nothing came back.
   */
  continues(from: number, at: number): boolean {
    for (let i = this.place(from); i < this.jumps.length; i++) {
      const j = this.jumps[i]!;
      if (j.offset >= at) break;
      if (j.to < from) return false;
    }
    return true;
  }
}
