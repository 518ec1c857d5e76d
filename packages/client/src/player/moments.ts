import type { Api } from "../api.ts";
import { Conversation } from "../fold/conversation.ts";
import { jumpOf, Timeline } from "../fold/timeline.ts";
import type { Event, OffsetRange } from "../fold/types.ts";
import { chunkSize, Events } from "./events.ts";
import { Keyframes } from "./keyframes.ts";
import { Positions } from "./positions.ts";

/** The chunks and keyframes kept of a session that is not loaded whole, and the keyframes of one that is. */
const chunksKept = 32;
const keyframesKept = 32;
const keyframesOfWhole = 400;

export type MomentsApi = Pick<Api, "events" | "snapshot">;

/**
 * Gives the conversation as of any offset: holds the loaded events of a session, and
 * keyframes to fold from.
 */
export class Moments {
  private readonly id: string;
  private readonly api: MomentsApi;
  private readonly events: Events;
  readonly positions = new Positions((offset) => this.event(offset));
  private readonly keyframes = new Keyframes(keyframesKept);
  private timeline = new Timeline([]);
  private fetching: { at: number; abort: AbortController; done: Promise<void> } | undefined; // the request for a keyframe
  private allLoaded = false;

  constructor(id: string, api: MomentsApi) {
    this.id = id;
    this.api = api;
    this.events = new Events(
      (from, limit) => api.events(id, { from, limit }),
      (events) => this.addJumps(events),
    );
    this.events.maxChunks = chunksKept;
  }

  get head(): number {
    return this.events.head;
  }

  /** Whether all events are loaded, so that no request is needed. */
  get whole(): boolean {
    return this.allLoaded;
  }

  /** The event at an offset, if it is loaded. */
  event(offset: number): Event | undefined {
    return this.events.get(offset);
  }

  /** The position of the event before an offset. */
  positionBefore(at: number, otherwise: number): number {
    return this.positions.of(at - 1) ?? otherwise;
  }

  has(from: number, to: number): boolean {
    return this.events.has(from, to);
  }

  // Loading

  /** Raises the head to at least this. */
  raiseHead(head: number): void {
    this.events.head = Math.max(this.events.head, head);
  }

  /** Adds the event that follows the head. */
  push(e: Event): void {
    this.events.push(e);
    this.addJumps([e]);
  }

  /** Adds the jumps among loaded events to the timeline. */
  private addJumps(events: Event[]): void {
    const jumps = events.map(jumpOf).filter((j) => j !== undefined);
    if (jumps.length > 0) this.timeline = this.timeline.with(jumps);
  }

  loadEvents(from: number, to: number): Promise<void> {
    return this.events.load(from, to);
  }

  loadAll(): Promise<void> {
    this.events.maxChunks = Number.POSITIVE_INFINITY;
    this.keyframes.maxCount = keyframesOfWhole;
    return this.events.load(0, this.head);
  }

  /** From now on, folds start at the first event: all events are loaded. */
  keepAll(): void {
    this.allLoaded = true;
    this.keyframes.clear(); // keyframes from snapshots lack the oldest messages
    this.keyframes.add(0, new Conversation().keep());
  }

  /** From now on, only a part of the events is kept. */
  keepPart(): void {
    this.allLoaded = false;
    this.events.maxChunks = chunksKept;
    this.keyframes.maxCount = keyframesKept;
    this.keyframes.clear(); // these keyframes hold all messages before them
  }

  /** Loads the keyframe and events for an offset, in parallel. A jump between them may need another keyframe. */
  async load(at: number): Promise<void> {
    // The server has the snapshot at the head in memory. Elsewhere, the offsets of a chunk share one keyframe.
    const near = at === this.head ? at : Math.floor((at - 1) / chunkSize) * chunkSize;
    await Promise.all([this.keyframe(near), this.events.load(Math.min(near, at - 1), at + 1)]);
  }

  /** Loads a keyframe at an offset, unless a near one before it is loaded. */
  private keyframe(at: number): Promise<void> {
    const near = this.keyframes.before(at, this.timeline);
    if (near && (near.offset === at || (at - near.offset <= chunkSize && this.has(near.offset, at))))
      return Promise.resolve();
    if (at === 0) this.keyframes.add(0, new Conversation().keep());
    return at === 0 || this.allLoaded ? Promise.resolve() : this.loadKeyframe(at);
  }

  /** Loads a keyframe from the server. It cancels an earlier request for another offset. */
  loadKeyframe(at: number): Promise<void> {
    if (this.fetching?.at === at) return this.fetching.done;
    this.stop();
    const abort = new AbortController();
    // Without `limit`, the server returns the messages that it has in memory. More would be slow.
    const done = this.api.snapshot(this.id, { at }, { signal: abort.signal }).then((s) => {
      if (!this.allLoaded) this.keyframes.add(at, Conversation.from(s));
    });
    const fetching = { at, abort, done };
    this.fetching = fetching;
    const finish = () => {
      if (this.fetching === fetching) this.fetching = undefined;
    };
    done.then(finish, finish);
    return done;
  }

  /** Cancels the request for a keyframe. */
  stop(): void {
    this.fetching?.abort.abort();
  }

  // Reading

  /** The conversation at an offset, from the nearest keyframe; undefined if events are missing. */
  fold(at: number): Conversation | undefined {
    const near = this.keyframes.before(at, this.timeline);
    const maxGap = this.allLoaded ? Number.POSITIVE_INFINITY : 2 * chunkSize;
    if (!near || at - near.offset > maxGap || !this.has(near.offset, at)) return undefined;
    const c = near.conversation.clone();
    const last = this.timeline.before("", at)?.offset ?? -1;
    c.follow(this.timeline, at);
    for (let offset = near.offset; offset < at; offset++) {
      // Before the last jump, the fold is not the conversation as of that offset.
      if (offset % chunkSize === 0 && offset > near.offset && offset > last) this.keyframes.add(offset, c.clone());
      const e = this.events.get(offset);
      if (e) c.apply(e);
    }
    c.advance(at);
    c.follow(undefined, 0); // later events are active until a jump reverts them
    return c;
  }

  /** The offset after the last event at or before a position, within a loaded range. */
  until(ms: number, from: number, to: number): number {
    let at = from;
    for (let low = from, high = to; low < high; ) {
      const mid = (low + high) >> 1;
      if (this.positionBefore(mid + 1, Number.POSITIVE_INFINITY) <= ms) at = low = mid + 1;
      else high = mid;
    }
    return at;
  }

  /**
   * Searches that offset page by page. It is mostly on the first page, which is loaded
   * together with its keyframe. Returns undefined when `wanted` turns false.
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
      if (first > from && this.positionBefore(first + 1, ms) > ms) to = first;
      else if (last < to && this.positionBefore(last, ms + 1) <= ms) from = last;
      else return this.until(ms, Math.max(from, first), Math.min(to, last));
      guess = Math.floor((from + to - 1) / 2);
    }
  }
}
