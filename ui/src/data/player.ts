import { Conversation } from "../fold/conversation";
import { jumpOf, Timeline } from "../fold/timeline";
import type { Event, Marker, OffsetRange, ReplayIndex, SessionEntry, Snapshot } from "../fold/types";
import { api as http } from "./api";
import { chunkSize, Events } from "./events";
import { Keyframes } from "./keyframes";
import type { PresenceEvent } from "./people";
import { isStep, offsetNear } from "./seek";
import { type Connection, Follower, type Listener } from "./stream";

export type { Connection } from "./stream";

/** What a player shows. A new object whenever something has changed. */
export interface DeckState {
  error?: unknown; // why nothing can be shown, or why what was asked for cannot
  entry?: SessionEntry; // as it was when the player was opened
  view?: Snapshot; // the conversation at the playhead
  index?: ReplayIndex;
  head: number; // how many events there are
  at: number; // the playhead: the events before this offset are shown
  timeMs: number; // when that is, since 1970
  playing: boolean;
  live: boolean; // the playhead follows the head
  seeking: boolean; // what is at the playhead is being loaded
  speed: number;
  skipIdle: boolean;
  connection: Connection;
}

/** Sessions of more events are not loaded whole. */
const wholeUpTo = 50_000;
/** Times longer than this in which nothing happens are skipped. */
export const idleMs = 3000;
/** How many chunks of a larger one are kept, and how many keyframes. */
const chunksKept = 32;
const keyframesKept = 32;
/** How many messages and calls of a larger one are kept in each thread, once there are twice as many. */
const itemsKept = 1000;
/** The most that a frame spends on folding. */
const frameBudgetMs = 8;
/** How often the replay index is asked for while events come. */
const indexEveryMs = 3000;

type Api = Pick<typeof http, "session" | "events" | "snapshot" | "replayIndex">;

export interface DeckOptions {
  api?: Api;
  follow?: (id: string, l: Listener) => Pick<Follower, "start" | "stop" | "reconnect">;
  now?: () => number; // milliseconds, of any origin
  frame?: (f: () => void) => void; // calls f soon, once
  finished?: boolean; // a recording: all events are at hand, and no more will come
}

/**
 * The tape of one session: its events, outside of React, and a playhead. It
 * follows the session live, or shows it as it was at any offset.
 */
export class Deck {
  readonly id: string;
  private readonly api: Api;
  private readonly now: () => number;
  private readonly frame: (f: () => void) => void;
  private readonly finished: boolean;
  private readonly follower: Pick<Follower, "start" | "stop" | "reconnect">;
  private readonly events: Events;
  private readonly keyframes = new Keyframes(keyframesKept);
  private readonly listeners = new Set<() => void>();
  private readonly presence = new Set<(e?: PresenceEvent) => void>();
  private timeline = new Timeline([]);
  private current: Conversation | undefined; // at the playhead, unless that is being loaded
  private shown: { conversation: Conversation; version: number } | undefined;
  private whole = false; // all events are here
  private opened = 0; // counts: what an earlier opening asked for is of no use
  private asked = 0; // likewise of seeks
  private fetching: { at: number; abort: AbortController; done: Promise<void> } | undefined; // a keyframe
  private scheduled = false;
  private ticks = 0; // counts them: one that came before its frame is not told again with it
  private lastFrame = 0;
  private indexAt = 0; // when the index was asked for
  private indexBusy = false;
  private readonly state: DeckState; // as it is
  private published: DeckState; // as it was told

  constructor(id: string, at?: number, o: DeckOptions = {}) {
    this.id = id;
    this.api = o.api ?? http;
    this.now = o.now ?? (() => performance.now());
    this.frame = o.frame ?? soon;
    this.finished = o.finished ?? false;
    const listener = {
      onEvent: (e: Event) => this.receive(e),
      onConnection: (connection: Connection) => this.set({ connection }),
      onPresence: (e?: PresenceEvent) => {
        for (const listener of this.presence) listener(e);
      },
    };
    this.follower = (o.follow ?? ((session, l) => new Follower(session, l)))(id, listener);
    this.events = new Events(
      (from, limit) => this.api.events(id, { from, limit }),
      (events) => this.learn(events),
    );
    this.events.most = chunksKept;
    this.state = {
      head: 0,
      at: at ?? 0,
      timeMs: 0,
      playing: false,
      live: at === undefined,
      seeking: true,
      speed: 1,
      skipIdle: true,
      connection: { state: "connecting" },
    };
    this.published = { ...this.state };
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** Tells who comes, goes and moves. Who is there is told anew with each connection: then it is undefined first. */
  onPresence = (listener: (e?: PresenceEvent) => void): (() => void) => {
    this.presence.add(listener);
    return () => this.presence.delete(listener);
  };

  get = (): DeckState => this.published;

  /** The event at an offset, if it is here. */
  event = (offset: number): Event | undefined => this.events.get(offset);

  // Opening

  /** Begins to load and to follow. What it had before, it keeps. */
  open = (): void => {
    const opening = ++this.opened;
    void this.begin(opening).catch((error) => {
      if (opening === this.opened) this.set({ error, seeking: false });
    });
  };

  close = (): void => {
    this.opened++;
    this.asked++;
    this.fetching?.abort.abort();
    this.follower.stop();
    this.set({ playing: false });
  };

  private async begin(opening: number): Promise<void> {
    const entry = await this.api.session(this.id);
    if (opening !== this.opened) return;
    this.events.head = Math.max(this.events.head, entry.head);
    this.set({ entry, head: this.events.head, error: undefined });
    this.follower.start(this.events.head);
    this.refreshIndex();
    if (this.finished) await this.loadWhole(opening);
    if (opening !== this.opened) return;
    await this.show(this.state.live ? this.events.head : this.clamp(this.state.at));
    if (opening !== this.opened || this.finished || this.events.head > wholeUpTo) return;
    await this.loadWhole(opening);
  }

  /** Loads all events, after which every seek is answered here. */
  private async loadWhole(opening: number): Promise<void> {
    this.events.most = Number.POSITIVE_INFINITY;
    this.keyframes.most = 400;
    await this.events.load(0, this.events.head);
    if (opening !== this.opened || this.whole) return;
    this.whole = true;
    this.keyframes.clear(); // those from snapshots lack what was long before
    this.keyframes.add(0, new Conversation().keep());
    if (!this.state.seeking) this.place(this.state.at);
  }

  /** Takes the jumps out of what was loaded. */
  private learn(events: Event[]): void {
    const jumps = events.map(jumpOf).filter((j) => j !== undefined);
    if (jumps.length > 0) this.timeline = this.timeline.with(jumps);
  }

  reconnect = (): void => {
    if (this.state.entry) this.follower.reconnect();
    else this.open();
  };

  // Following

  private receive(e: Event): void {
    if (e.offset < this.events.head) return;
    this.events.push(e);
    if (this.whole && !this.finished && this.events.head > wholeUpTo + chunkSize) this.partly();
    const jump = jumpOf(e);
    this.learn([e]);
    if (jump || e.type.startsWith("RUN_")) this.indexAt = 0;
    this.set({ head: this.events.head });
    this.refreshIndex();
    if (!this.state.live || this.state.seeking) return;
    if (jump || !this.current) {
      void this.show(this.events.head);
      return;
    }
    this.current.apply(e);
    this.set({ at: this.events.head, timeMs: Date.parse(e.timestamp) });
  }

  /** From here on only a part of the events is kept. */
  private partly(): void {
    this.whole = false;
    this.events.most = chunksKept;
    this.keyframes.most = keyframesKept;
    this.keyframes.clear(); // they have all that was before them
  }

  private refreshIndex(): void {
    const wait = this.indexAt === 0 ? 0 : this.indexAt + indexEveryMs - this.now();
    if (this.indexBusy || wait > 0) return;
    this.indexBusy = true;
    this.indexAt = this.now() || 1;
    const opening = this.opened;
    this.api
      .replayIndex(this.id)
      .then((index) => opening === this.opened && this.set({ index }))
      .catch(() => undefined) // the bar stays as it was; it is asked for again with the next event
      .finally(() => {
        this.indexBusy = false;
      });
  }

  // Seeking

  private clamp(at: number): number {
    return Math.max(Math.min(1, this.events.head), Math.min(Math.floor(at) || 0, this.events.head));
  }

  /** Shows the events before an offset. Playing goes on from there. */
  seek = (at: number): void => {
    this.set({ live: false });
    void this.show(this.clamp(at));
  };

  /** Shows what had happened up to a time. */
  seekTime = (ms: number): void => {
    this.set({ live: false });
    const asked = ++this.asked;
    if (this.whole) {
      void this.show(this.clamp(this.until(ms, 0, this.events.head)), ms);
      return;
    }
    const near = offsetNear(ms, this.state.index, this.events.head);
    if (this.events.has(Math.max(0, near.from - 1), near.to)) {
      void this.show(this.clamp(this.until(ms, near.from, near.to)), ms);
      return;
    }
    this.set({ timeMs: ms, seeking: true });
    this.find(ms, near, asked).catch((error) => asked === this.asked && this.set({ error, seeking: false }));
  };

  /** Looks for a time page by page: most often it is on the first that is loaded, with what is needed to show it. */
  private async find(ms: number, { from, to, guess }: OffsetRange & { guess: number }, asked: number): Promise<void> {
    for (;;) {
      const first = Math.floor(Math.max(0, Math.min(guess, this.events.head - 1)) / chunkSize) * chunkSize;
      const last = Math.min(first + chunkSize, this.events.head);
      await Promise.all([this.events.load(first, last), this.keyframe(first)]);
      if (asked !== this.asked) return;
      if (first > from && this.timeBefore(first + 1, ms) > ms) to = first;
      else if (last < to && this.timeBefore(last, ms + 1) <= ms) from = last;
      else {
        void this.show(this.clamp(this.until(ms, Math.max(from, first), Math.min(to, last))), ms);
        return;
      }
      guess = Math.floor((from + to - 1) / 2);
    }
  }

  /** The offset after the last event that was not after a time, in a range that is here. */
  private until(ms: number, from: number, to: number): number {
    let at = from;
    for (let low = from, high = to; low < high; ) {
      const mid = (low + high) >> 1;
      if (this.timeBefore(mid + 1, Number.POSITIVE_INFINITY) <= ms) at = low = mid + 1;
      else high = mid;
    }
    return at;
  }

  goLive = (): void => {
    if (this.finished) {
      this.seek(this.events.head);
      return;
    }
    this.set({ live: true, playing: false });
    void this.show(this.events.head);
  };

  /** Goes to the next or previous event, or to what can be seen: the end of a message, a tool call, a change of state. */
  step = (by: 1 | -1, unit: "item" | "event"): void => {
    if (unit === "event") {
      this.seek(this.state.at + by);
      return;
    }
    let offset = by > 0 ? this.state.at : this.state.at - 2;
    for (let e = this.events.get(offset); e && !isStep(e); e = this.events.get(offset)) offset += by;
    this.seek(offset + 1);
  };

  /** Goes to the next or previous marker of some kind. */
  next = (by: 1 | -1, fits: (m: Marker) => boolean): void => {
    const markers = this.state.index?.markers.filter(fits) ?? [];
    const m =
      by > 0 ? markers.find((x) => x.offset >= this.state.at) : markers.findLast((x) => x.offset < this.state.at - 1);
    if (m) this.seek(m.offset + 1);
  };

  /** Moves the playhead, and shows what is there as soon as that is here. */
  private async show(at: number, timeMs?: number): Promise<void> {
    const asked = ++this.asked;
    if (this.place(at, timeMs)) return;
    this.set({ at, seeking: true, ...(timeMs === undefined ? {} : { timeMs }) });
    try {
      // At the head the server has it at hand. Elsewhere many places have the same keyframe.
      const near = at === this.events.head ? at : this.keyframeBefore(at);
      await Promise.all([this.keyframe(near), this.events.load(Math.min(near, at - 1), at + 1)]);
      if (asked !== this.asked) return;
      if (!this.place(at, timeMs)) {
        await this.fetchKeyframe(at); // something was taken back on the way
        if (asked !== this.asked) return;
        this.place(at, timeMs);
      }
      if (this.state.live && this.events.head > at) void this.show(this.events.head); // it went on meanwhile
    } catch (error) {
      if (asked === this.asked) this.set({ error, seeking: false });
    }
  }

  private keyframeBefore(at: number): number {
    return Math.floor((at - 1) / chunkSize) * chunkSize;
  }

  /** Gets a keyframe at an offset, unless there is one near enough before it. */
  private keyframe(at: number): Promise<void> {
    const near = this.keyframes.before(at, this.timeline);
    if (near && (near.offset === at || (at - near.offset <= chunkSize && this.events.has(near.offset, at))))
      return Promise.resolve();
    if (at === 0) this.keyframes.add(0, new Conversation().keep());
    return at === 0 || this.whole ? Promise.resolve() : this.fetchKeyframe(at);
  }

  /** Gets a keyframe from the server. One that is on its way and is not wanted any more is let go. */
  private fetchKeyframe(at: number): Promise<void> {
    if (this.fetching?.at === at) return this.fetching.done;
    this.fetching?.abort.abort();
    const abort = new AbortController();
    // What the server has at hand: more would take it long.
    const done = this.api.snapshot(this.id, { at }, { signal: abort.signal }).then((s) => {
      if (!this.whole) this.keyframes.add(at, Conversation.from(s));
    });
    const fetching = { at, abort, done };
    this.fetching = fetching;
    const through = () => {
      if (this.fetching === fetching) this.fetching = undefined;
    };
    done.then(through, through);
    return done;
  }

  /** Shows what is at an offset if that can be folded from what is here. */
  private place(at: number, timeMs?: number): boolean {
    const c = this.fold(at);
    if (!c) return false;
    this.current = c;
    const e = this.events.get(at - 1);
    const time = timeMs ?? (e ? Date.parse(e.timestamp) : this.state.timeMs);
    this.set({ at, timeMs: time, seeking: false, error: undefined });
    if (!this.state.playing) this.tick(); // with this frame, not with the one after it
    return true;
  }

  /** The conversation at an offset, from the nearest keyframe; undefined if events are missing. */
  private fold(at: number): Conversation | undefined {
    const near = this.keyframes.before(at, this.timeline);
    if (
      !near ||
      at - near.offset > (this.whole ? Number.POSITIVE_INFINITY : 2 * chunkSize) ||
      !this.events.has(near.offset, at)
    )
      return undefined;
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

  // Playing

  /** Plays, or stops. At the end it plays from the beginning; live it stops the picture. */
  toggle = (): void => {
    const { playing, live, at, head, view } = this.state;
    if (playing || (live && view?.session.status === "running")) {
      this.set({ playing: false, live: false });
      return;
    }
    this.lastFrame = this.now();
    this.set({ playing: true, live: false });
    if (live || at >= head) this.seek(1);
  };

  setSpeed = (speed: number): void => this.set({ speed });
  setSkipIdle = (skipIdle: boolean): void => this.set({ skipIdle });

  private play(): void {
    const now = this.now();
    const passed = Math.max(0, now - this.lastFrame);
    this.lastFrame = now;
    if (this.state.seeking || !this.current) return; // the clock waits for the events
    let time = this.state.timeMs + passed * this.state.speed;
    let { at } = this.state;
    while (at < this.events.head) {
      const e = this.events.get(at);
      if (!e) {
        this.loadAhead(at);
        break;
      }
      const when = Date.parse(e.timestamp);
      if (when > time) {
        if (!this.state.skipIdle || when - this.timeBefore(at, time) <= idleMs) break;
        time = when;
      }
      if (this.now() - now > frameBudgetMs) {
        time = Math.min(time, when);
        break;
      }
      at++;
      if (jumpOf(e)) {
        void this.show(at, time);
        return;
      }
      this.current.apply(e);
    }
    if (at === this.events.head) {
      const running = this.current.snapshot().session.status === "running";
      this.set({ at, timeMs: time, playing: false, live: running && !this.finished });
      return;
    }
    this.set({ at, timeMs: time });
    if (!this.events.has(at, at + chunkSize / 2)) void this.events.load(at, at + chunkSize).catch(() => undefined);
  }

  /** When the event before an offset was. */
  private timeBefore(at: number, otherwise: number): number {
    const e = this.events.get(at - 1);
    return e ? Date.parse(e.timestamp) : otherwise;
  }

  private loadAhead(at: number): void {
    const asked = ++this.asked;
    this.set({ seeking: true });
    this.events.load(at, at + chunkSize).then(
      () => asked === this.asked && this.set({ seeking: false }),
      (error) => asked === this.asked && this.set({ error, seeking: false, playing: false }),
    );
  }

  // Telling

  private set(changed: Partial<DeckState>): void {
    Object.assign(this.state, changed);
    if (this.scheduled) return;
    this.scheduled = true;
    const ticks = this.ticks;
    this.frame(() => ticks === this.ticks && this.tick());
  }

  /** Tells what has changed, at most once a frame. */
  private tick(): void {
    this.scheduled = false;
    this.ticks++;
    if (this.state.playing) this.play();
    const c = this.current;
    if (!this.whole) c?.trim(itemsKept);
    if (c && !this.state.seeking && (this.shown?.conversation !== c || this.shown.version !== c.version)) {
      const view = c.snapshot();
      this.state.view = { ...view, session: { ...view.session, id: this.id } };
      this.shown = { conversation: c, version: c.version };
    }
    this.published = { ...this.state };
    for (const listener of this.listeners) listener();
    if (this.state.playing) this.set({});
  }
}

/** Calls f with the next frame; where nobody looks there are none. */
function soon(f: () => void): void {
  if (document.hidden) setTimeout(f, 250);
  else requestAnimationFrame(f);
}
