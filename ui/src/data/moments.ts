import { Conversation } from "../fold/conversation";
import { jumpOf, Timeline } from "../fold/timeline";
import type { Event, OffsetRange } from "../fold/types";
import type { api } from "./api";
import { chunkSize, Events } from "./events";
import { Keyframes } from "./keyframes";

/** How many chunks are kept of what is not loaded whole, and how many keyframes; and of what is, how many of these. */
const chunksKept = 32;
const keyframesKept = 32;
const keyframesOfWhole = 400;

export type MomentsApi = Pick<typeof api, "events" | "snapshot">;

/**
 * What a session was at any offset: its events, as far as they were loaded, and
 * conversations from which one can go on to what is asked for.
 */
export class Moments {
  private readonly id: string;
  private readonly api: MomentsApi;
  private readonly events: Events;
  private readonly keyframes = new Keyframes(keyframesKept);
  private timeline = new Timeline([]);
  private fetching: { at: number; abort: AbortController; done: Promise<void> } | undefined; // a keyframe
  private all = false;

  constructor(id: string, api: MomentsApi) {
    this.id = id;
    this.api = api;
    this.events = new Events(
      (from, limit) => api.events(id, { from, limit }),
      (events) => this.learn(events),
    );
    this.events.most = chunksKept;
  }

  get head(): number {
    return this.events.head;
  }

  /** Whether all events are here, so that nothing need be asked for. */
  get whole(): boolean {
    return this.all;
  }

  /** The event at an offset, if it is here. */
  event(offset: number): Event | undefined {
    return this.events.get(offset);
  }

  /** When the event before an offset was. */
  timeBefore(at: number, otherwise: number): number {
    const e = this.events.get(at - 1);
    return e ? Date.parse(e.timestamp) : otherwise;
  }

  has(from: number, to: number): boolean {
    return this.events.has(from, to);
  }

  // Getting

  /** Says how many events there are at least. */
  reach(head: number): void {
    this.events.head = Math.max(this.events.head, head);
  }

  /** Adds the event that follows the head. */
  push(e: Event): void {
    this.events.push(e);
    this.learn([e]);
  }

  /** Takes the jumps out of what was loaded. */
  private learn(events: Event[]): void {
    const jumps = events.map(jumpOf).filter((j) => j !== undefined);
    if (jumps.length > 0) this.timeline = this.timeline.with(jumps);
  }

  loadEvents(from: number, to: number): Promise<void> {
    return this.events.load(from, to);
  }

  loadAll(): Promise<void> {
    this.events.most = Number.POSITIVE_INFINITY;
    this.keyframes.most = keyframesOfWhole;
    return this.events.load(0, this.head);
  }

  /** From here on everything is folded from the beginning: all events were loaded. */
  keepAll(): void {
    this.all = true;
    this.keyframes.clear(); // those from snapshots lack what was long before
    this.keyframes.add(0, new Conversation().keep());
  }

  /** From here on only a part of the events is kept. */
  keepPart(): void {
    this.all = false;
    this.events.most = chunksKept;
    this.keyframes.most = keyframesKept;
    this.keyframes.clear(); // they have all that was before them
  }

  /** Gets what an offset is folded from, at once; unless something was taken back on the way. */
  async load(at: number): Promise<void> {
    // At the head the server has it at hand. Elsewhere many places have the same keyframe.
    const near = at === this.head ? at : Math.floor((at - 1) / chunkSize) * chunkSize;
    await Promise.all([this.keyframe(near), this.events.load(Math.min(near, at - 1), at + 1)]);
  }

  /** Gets a keyframe at an offset, unless there is one near enough before it. */
  private keyframe(at: number): Promise<void> {
    const near = this.keyframes.before(at, this.timeline);
    if (near && (near.offset === at || (at - near.offset <= chunkSize && this.has(near.offset, at))))
      return Promise.resolve();
    if (at === 0) this.keyframes.add(0, new Conversation().keep());
    return at === 0 || this.all ? Promise.resolve() : this.loadKeyframe(at);
  }

  /** Gets a keyframe from the server. One that is on its way and is not wanted any more is let go. */
  loadKeyframe(at: number): Promise<void> {
    if (this.fetching?.at === at) return this.fetching.done;
    this.stop();
    const abort = new AbortController();
    // What the server has at hand: more would take it long.
    const done = this.api.snapshot(this.id, { at }, { signal: abort.signal }).then((s) => {
      if (!this.all) this.keyframes.add(at, Conversation.from(s));
    });
    const fetching = { at, abort, done };
    this.fetching = fetching;
    const through = () => {
      if (this.fetching === fetching) this.fetching = undefined;
    };
    done.then(through, through);
    return done;
  }

  /** Lets the keyframe go that is on its way. */
  stop(): void {
    this.fetching?.abort.abort();
  }

  // Telling

  /** The conversation at an offset, from the nearest keyframe; undefined if events are missing. */
  fold(at: number): Conversation | undefined {
    const near = this.keyframes.before(at, this.timeline);
    const most = this.all ? Number.POSITIVE_INFINITY : 2 * chunkSize;
    if (!near || at - near.offset > most || !this.has(near.offset, at)) return undefined;
    const c = near.conversation.clone();
    const last = this.timeline.before("", at)?.offset ?? -1;
    c.follow(this.timeline, at);
    for (let offset = near.offset; offset < at; offset++) {
      // Before the last jump, what is folded is not what was in force then.
      if (offset % chunkSize === 0 && offset > near.offset && offset > last) this.keyframes.add(offset, c.clone());
      const e = this.events.get(offset);
      if (e) c.apply(e);
    }
    c.advance(at);
    c.follow(undefined, 0); // what follows is in force until a jump says otherwise
    return c;
  }

  /** The offset after the last event that was not after a time, in a range that is here. */
  until(ms: number, from: number, to: number): number {
    let at = from;
    for (let low = from, high = to; low < high; ) {
      const mid = (low + high) >> 1;
      if (this.timeBefore(mid + 1, Number.POSITIVE_INFINITY) <= ms) at = low = mid + 1;
      else high = mid;
    }
    return at;
  }

  /**
   * Looks for that offset page by page: most often it is on the first that is
   * loaded, with what is needed to show it. Undefined if it is not wanted any more.
   */
  async find(
    ms: number,
    { from, to, guess }: OffsetRange & { guess: number },
    wanted: () => boolean,
  ): Promise<number | undefined> {
    for (;;) {
      const first = Math.floor(Math.max(0, Math.min(guess, this.head - 1)) / chunkSize) * chunkSize;
      const last = Math.min(first + chunkSize, this.head);
      await Promise.all([this.loadEvents(first, last), this.keyframe(first)]);
      if (!wanted()) return undefined;
      if (first > from && this.timeBefore(first + 1, ms) > ms) to = first;
      else if (last < to && this.timeBefore(last, ms + 1) <= ms) from = last;
      else return this.until(ms, Math.max(from, first), Math.min(to, last));
      guess = Math.floor((from + to - 1) / 2);
    }
  }
}
