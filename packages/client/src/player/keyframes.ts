import type { Conversation } from "../fold/conversation.ts";
import type { Timeline } from "../fold/timeline.ts";

export interface Keyframe {
  offset: number;
  conversation: Conversation; // of the events active as of the offset; clone it, do not change it
}

/** Stored conversations. A seek folds only the events after the nearest one. */
export class Keyframes {
  private list: Keyframe[] = []; // by offset
  maxCount: number;

  constructor(maxCount: number) {
    this.maxCount = maxCount;
  }

  add(offset: number, conversation: Conversation): void {
    const i = this.indexOf(offset);
    if (this.list[i]?.offset === offset) return;
    if (this.list.length >= this.maxCount) this.thin();
    this.list.splice(this.indexOf(offset), 0, { offset, conversation });
  }

  /** Drops every second keyframe, but not the first. */
  private thin(): void {
    this.list = this.list.filter((_, i) => i % 2 === 0);
  }

  /** The index of the first keyframe at or after an offset. */
  private indexOf(offset: number): number {
    let low = 0;
    for (let high = this.list.length; low < high; ) {
      const mid = (low + high) >> 1;
      if (this.list[mid]!.offset < offset) low = mid + 1;
      else high = mid;
    }
    return low;
  }

  /** The last keyframe from which a fold can continue to an offset. */
  before(at: number, timeline: Timeline): Keyframe | undefined {
    for (let i = this.indexOf(at + 1) - 1; i >= 0; i--) {
      const k = this.list[i]!;
      if (timeline.continues(k.offset, at)) return k;
    }
    return undefined;
  }

  clear(): void {
    this.list = [];
  }
}
