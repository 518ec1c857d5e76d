import type { Conversation } from "../fold/conversation";
import type { Timeline } from "../fold/timeline";

export interface Keyframe {
  offset: number;
  conversation: Conversation; // of what was in force as of the offset; to be copied, not changed
}

/** Conversations to go on from, so that to seek costs the way from the nearest one. */
export class Keyframes {
  private list: Keyframe[] = []; // by offset
  most: number; // that are kept

  constructor(most: number) {
    this.most = most;
  }

  add(offset: number, conversation: Conversation): void {
    const i = this.place(offset);
    if (this.list[i]?.offset === offset) return;
    if (this.list.length >= this.most) this.thin();
    this.list.splice(this.place(offset), 0, { offset, conversation });
  }

  /** Lets every second one go, but not the first. */
  private thin(): void {
    this.list = this.list.filter((_, i) => i % 2 === 0);
  }

  /** The index of the first one at or after an offset. */
  private place(offset: number): number {
    let low = 0;
    for (let high = this.list.length; low < high; ) {
      const mid = (low + high) >> 1;
      if (this.list[mid]!.offset < offset) low = mid + 1;
      else high = mid;
    }
    return low;
  }

  /** The last one from which one can go on to an offset. */
  before(at: number, timeline: Timeline): Keyframe | undefined {
    for (let i = this.place(at + 1) - 1; i >= 0; i--) {
      const k = this.list[i]!;
      if (timeline.continues(k.offset, at)) return k;
    }
    return undefined;
  }

  clear(): void {
    this.list = [];
  }
}
