import type { Event, JsonObject, Jump, OffsetRange } from "./types.ts";

export const mainThread = "main";

/** The jump that an event makes (rewind, overwrite, clear, or an attempt of a run); undefined for any other event. */
export function jumpOf(e: Event): Jump | undefined {
  let to = 0;
  const d = e.data ?? {};
  switch (e.type) {
    case "session.rewound":
      to = integer(d.toOffset);
      break;
    case "attempt.superseded":
      return link(e, d, integer(d.fromOffset), e.thread || mainThread, "");
    case "session.overwritten":
      to = integer(d.fromOffset);
      break;
    case "session.cleared":
      break;
    default:
      return undefined;
  }
  const j = link(e, d, to, typeof d.thread === "string" ? d.thread : "", typeof d.marker === "string" ? d.marker : "");
  if (Array.isArray(d.with)) j.with = d.with.filter((name) => typeof name === "string");
  return j;
}

function link(e: Event, d: JsonObject, to: number, thread: string, marker: string): Jump {
  const previous = Math.max(integer(d.previous), 0);
  return {
    offset: e.offset,
    to: Math.min(Math.max(to, 0), e.offset),
    thread,
    marker,
    previous: previous >= e.offset ? 0 : previous,
  };
}

/** Whether a jump reverts events of a thread. */
export function reverts(j: Jump, thread: string): boolean {
  return j.thread === "" || j.thread === thread || (j.with?.includes(thread) ?? false);
}

function integer(v: unknown): number {
  return Number.isSafeInteger(v) ? (v as number) : 0;
}

/**
 * Decides which events are active as of an offset, after all jumps below that offset.
 * Right after a jump, the active events are those that were active at its target
 * offset. A Timeline is immutable.
 */
export class Timeline {
  readonly jumps: readonly Jump[]; // by offset

  constructor(jumps: readonly Jump[]) {
    this.jumps = [...jumps].sort((a, b) => a.offset - b.offset);
  }

  /** A timeline with more jumps; duplicates count once. */
  with(jumps: readonly Jump[]): Timeline {
    return new Timeline([...new Map([...this.jumps, ...jumps].map((j) => [j.offset, j])).values()]);
  }

  /** The newest jump below an offset that reverts events of a thread; of any thread if it is "". */
  before(thread: string, at: number): Jump | undefined {
    let i = this.indexOf(at);
    for (i--; i >= 0; i--) {
      const j = this.jumps[i]!;
      if (thread === "" || reverts(j, thread)) return j;
    }
    return undefined;
  }

  /** The index of the first jump at or after an offset. */
  private indexOf(at: number): number {
    let low = 0;
    let high = this.jumps.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (this.jumps[mid]!.offset < at) low = mid + 1;
      else high = mid;
    }
    return low;
  }

  /** The ranges of the events that are active in a thread as of an offset, oldest first. */
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

  /** Whether the event at `offset`, which belongs to `thread`, is active as of `at`. */
  has(offset: number, thread: string, at: number): boolean {
    while (offset < at) {
      const j = this.before(thread || mainThread, at);
      if (!j || offset >= j.offset) return true;
      at = j.to;
    }
    return false;
  }

  /**
   * Whether a fold as of one offset can continue to a later one: no jump between them
   * reverts or restores an event below the first.
   */
  continues(from: number, at: number): boolean {
    for (let i = this.indexOf(from); i < this.jumps.length; i++) {
      const j = this.jumps[i]!;
      if (j.offset >= at) break;
      if (j.to < from) return false;
    }
    return true;
  }
}
