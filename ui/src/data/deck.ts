import type { Conversation } from "../fold/conversation";
import { jumpOf } from "../fold/timeline";
import type { Event, Marker, ReplayIndex, SessionEntry, Snapshot } from "../fold/types";
import { api as http } from "./api";
import { chunkSize } from "./events";
import { Moments, type MomentsApi } from "./moments";
import type { PresenceEvent } from "./people";
import { isStep, offsetNear } from "./seek";
import { type Connection, Follower, type Listener } from "./stream";

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
/** How many messages and calls of a larger one are kept in each thread, once there are twice as many. */
const itemsKept = 1000;
/** The most that a frame spends on folding. */
const frameBudgetMs = 8;
/** How often the replay index is asked for while events come. */
const indexEveryMs = 3000;

type Api = MomentsApi & Pick<typeof http, "session" | "replayIndex">;

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
  private readonly moments: Moments;
  private readonly listeners = new Set<() => void>();
  private readonly presence = new Set<(e?: PresenceEvent) => void>();
  private current: Conversation | undefined; // at the playhead, unless that is being loaded
  private shown: { conversation: Conversation; version: number } | undefined;
  private opened = 0; // counts: what an earlier opening asked for is of no use
  private asked = 0; // likewise of seeks
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
    this.moments = new Moments(id, this.api);
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
  event = (offset: number): Event | undefined => this.moments.event(offset);

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
    this.moments.stop();
    this.follower.stop();
    this.set({ playing: false });
  };

  private async begin(opening: number): Promise<void> {
    const entry = await this.api.session(this.id);
    if (opening !== this.opened) return;
    this.moments.reach(entry.head);
    this.set({ entry, head: this.moments.head, error: undefined });
    this.follower.start(this.moments.head);
    this.refreshIndex();
    if (this.finished) await this.loadWhole(opening);
    if (opening !== this.opened) return;
    await this.show(this.state.live ? this.moments.head : this.clamp(this.state.at));
    if (opening !== this.opened || this.finished || this.moments.head > wholeUpTo) return;
    await this.loadWhole(opening);
  }

  /** Loads all events, after which every seek is answered here. */
  private async loadWhole(opening: number): Promise<void> {
    await this.moments.loadAll();
    if (opening !== this.opened || this.moments.whole) return;
    this.moments.keepAll();
    if (!this.state.seeking) this.place(this.state.at);
  }

  reconnect = (): void => {
    if (this.state.entry) this.follower.reconnect();
    else this.open();
  };

  // Following

  private receive(e: Event): void {
    if (e.offset < this.moments.head) return;
    this.moments.push(e);
    if (this.moments.whole && !this.finished && this.moments.head > wholeUpTo + chunkSize) this.moments.keepPart();
    const jump = jumpOf(e);
    if (jump || e.type.startsWith("RUN_")) this.indexAt = 0;
    this.set({ head: this.moments.head });
    this.refreshIndex();
    if (!this.state.live || this.state.seeking) return;
    if (jump || !this.current) {
      void this.show(this.moments.head);
      return;
    }
    this.current.apply(e);
    this.set({ at: this.moments.head, timeMs: Date.parse(e.timestamp) });
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
    return Math.max(Math.min(1, this.moments.head), Math.min(Math.floor(at) || 0, this.moments.head));
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
    if (this.moments.whole) {
      void this.show(this.clamp(this.moments.until(ms, 0, this.moments.head)), ms);
      return;
    }
    const near = offsetNear(ms, this.state.index, this.moments.head);
    if (this.moments.has(Math.max(0, near.from - 1), near.to)) {
      void this.show(this.clamp(this.moments.until(ms, near.from, near.to)), ms);
      return;
    }
    this.set({ timeMs: ms, seeking: true });
    const wanted = () => asked === this.asked;
    this.moments
      .find(ms, near, wanted)
      .then((at) => {
        if (at !== undefined && wanted()) void this.show(this.clamp(at), ms);
      })
      .catch((error) => wanted() && this.set({ error, seeking: false }));
  };

  goLive = (): void => {
    if (this.finished) {
      this.seek(this.moments.head);
      return;
    }
    this.set({ live: true, playing: false });
    void this.show(this.moments.head);
  };

  /** Goes to the next or previous event, or to what can be seen: the end of a message, a tool call, a change of state. */
  step = (by: 1 | -1, unit: "item" | "event"): void => {
    if (unit === "event") {
      this.seek(this.state.at + by);
      return;
    }
    let offset = by > 0 ? this.state.at : this.state.at - 2;
    for (let e = this.event(offset); e && !isStep(e); e = this.event(offset)) offset += by;
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
      await this.moments.load(at);
      if (asked !== this.asked) return;
      if (!this.place(at, timeMs)) {
        await this.moments.loadKeyframe(at); // something was taken back on the way
        if (asked !== this.asked) return;
        this.place(at, timeMs);
      }
      if (this.state.live && this.moments.head > at) void this.show(this.moments.head); // it went on meanwhile
    } catch (error) {
      if (asked === this.asked) this.set({ error, seeking: false });
    }
  }

  /** Shows what is at an offset if that can be folded from what is here. */
  private place(at: number, timeMs?: number): boolean {
    const c = this.moments.fold(at);
    if (!c) return false;
    this.current = c;
    const e = this.event(at - 1);
    const time = timeMs ?? (e ? Date.parse(e.timestamp) : this.state.timeMs);
    this.set({ at, timeMs: time, seeking: false, error: undefined });
    if (!this.state.playing) this.tick(); // with this frame, not with the one after it
    return true;
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
    while (at < this.moments.head) {
      const e = this.event(at);
      if (!e) {
        this.loadAhead(at);
        break;
      }
      const when = Date.parse(e.timestamp);
      if (when > time) {
        if (!this.state.skipIdle || when - this.moments.timeBefore(at, time) <= idleMs) break;
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
    if (at === this.moments.head) {
      const running = this.current.snapshot().session.status === "running";
      this.set({ at, timeMs: time, playing: false, live: running && !this.finished });
      return;
    }
    this.set({ at, timeMs: time });
    if (!this.moments.has(at, at + chunkSize / 2))
      void this.moments.loadEvents(at, at + chunkSize).catch(() => undefined);
  }

  private loadAhead(at: number): void {
    const asked = ++this.asked;
    this.set({ seeking: true });
    this.moments.loadEvents(at, at + chunkSize).then(
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
    if (!this.moments.whole) c?.trim(itemsKept);
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
