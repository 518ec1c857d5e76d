import type { Conversation } from "../fold/conversation.ts";
import { jumpOf } from "../fold/timeline.ts";
import type { Event, Marker, ReplayIndex } from "../fold/types.ts";
import type { Connection, Follower } from "../follow.ts";
import type { PresenceEvent } from "../people.ts";
import { hasOpenRun } from "../status.ts";
import { chunkSize } from "./events.ts";
import { nextFrame } from "./frame.ts";
import { Moments } from "./moments.ts";
import { eventsPerSecond } from "./positions.ts";
import { isStep, offsetNear } from "./seek.ts";
import { type DeckApi, type DeckOptions, type DeckState, spanSpeed } from "./state.ts";

/** A session with more events is not loaded whole. */
const maxWhole = 50_000;
/** Idle times longer than this are skipped. */
export const idleMs = 3000;
/** In a larger session, a thread with twice as many messages or calls is trimmed to this number. */
const itemsKept = 1000;
/** The longest time that a frame spends on folding. */
const frameBudgetMs = 8;
/** How often the replay index is requested while events arrive. */
const indexEveryMs = 3000;

/**
 * The player of one session, outside of React: its events and a playhead. It
 * follows the session live, or shows it as of any offset.
 */
export class Deck {
  readonly id: string;
  private readonly api: DeckApi;
  private readonly now: () => number;
  private readonly frame: (f: () => void) => void;
  private readonly finished: boolean;
  private readonly follower: Pick<Follower, "start" | "stop" | "reconnect">;
  private readonly moments: Moments;
  private readonly listeners = new Set<() => void>();
  private readonly presence = new Set<(e?: PresenceEvent) => void>();
  private current: Conversation | undefined; // at the playhead, unless it is being loaded
  private shown: { conversation: Conversation; version: number } | undefined;
  private openCount = 0; // counter: responses to an earlier opening are ignored
  private seekCount = 0; // the same for seeks
  private scheduled = false;
  private ticks = 0; // counter: a tick that ran before its frame does not run again in it
  private lastFrame = 0;
  private indexAt = 0; // when the index was requested
  private indexBusy = false;
  private readonly state: DeckState; // current
  private published: DeckState; // as the listeners last saw it

  constructor(id: string, at: number | undefined, o: DeckOptions) {
    this.id = id;
    this.api = o.api;
    this.now = o.now ?? (() => performance.now());
    this.frame = o.frame ?? nextFrame;
    this.finished = o.finished ?? false;
    const listener = {
      onEvent: (e: Event) => this.receive(e),
      onConnection: (connection: Connection) => this.set({ connection }),
      onPresence: (e?: PresenceEvent) => {
        for (const listener of this.presence) listener(e);
      },
    };
    this.follower = o.follow(id, listener);
    this.moments = new Moments(id, this.api);
    this.state = {
      head: 0,
      at: at ?? 0,
      axis: "events",
      position: 0,
      length: 0,
      playing: false,
      live: at === undefined,
      seeking: true,
      speed: 1,
      span: undefined,
      skipIdle: true,
      connection: { state: "connecting" },
    };
    this.published = { ...this.state };
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /**
   * Subscribes to presence events: joined, moved, left. Each new connection resends
   * the roster; the listener first gets `undefined` to reset.
   */
  onPresence = (listener: (e?: PresenceEvent) => void): (() => void) => {
    this.presence.add(listener);
    return () => this.presence.delete(listener);
  };

  get = (): DeckState => this.published;

  /** The event at an offset, if it is loaded. */
  event = (offset: number): Event | undefined => this.moments.event(offset);

  /** The position of an event in the recording, in milliseconds, if it is known. */
  positionOf = (e: Pick<Event, "offset" | "timestamp" | "channel">): number | undefined =>
    this.moments.positions.ofEvent(e);

  // Opening

  /** Starts to load and to follow. Events loaded before are kept. */
  open = (): void => {
    const opening = ++this.openCount;
    void this.begin(opening).catch((error) => {
      if (opening === this.openCount) this.set({ error, seeking: false });
    });
  };

  close = (): void => {
    this.openCount++;
    this.seekCount++;
    this.moments.stop();
    this.follower.stop();
    this.set({ playing: false });
  };

  private async begin(opening: number): Promise<void> {
    const entry = await this.api.session(this.id);
    if (opening !== this.openCount) return;
    this.moments.raiseHead(entry.head);
    this.set({ entry, head: this.moments.head, error: undefined });
    this.follower.start(this.moments.head);
    this.refreshIndex();
    if (this.finished) await this.loadWhole(opening);
    if (opening !== this.openCount) return;
    await this.show(this.state.live ? this.moments.head : this.clamp(this.state.at));
    if (opening !== this.openCount || this.finished || this.moments.head > maxWhole) return;
    await this.loadWhole(opening);
  }

  /** Loads all events. From then on no seek needs the server. */
  private async loadWhole(opening: number): Promise<void> {
    await this.moments.loadAll();
    if (opening !== this.openCount || this.moments.whole) return;
    this.moments.keepAll();
    if (!this.state.seeking) this.showLoaded(this.state.at);
  }

  reconnect = (): void => {
    if (this.state.entry) this.follower.reconnect();
    else this.open();
  };

  // Following

  private receive(e: Event): void {
    if (e.offset < this.moments.head) return;
    this.moments.push(e);
    if (this.moments.whole && !this.finished && this.moments.head > maxWhole + chunkSize) this.moments.keepPart();
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
    this.set({ at: this.moments.head, position: this.placeOf(this.moments.head) });
  }

  private refreshIndex(): void {
    const wait = this.indexAt === 0 ? 0 : this.indexAt + indexEveryMs - this.now();
    if (this.indexBusy || wait > 0) return;
    this.indexBusy = true;
    this.indexAt = this.now() || 1;
    const opening = this.openCount;
    this.api
      .replayIndex(this.id)
      .then((index) => opening === this.openCount && this.useIndex(index))
      .catch(() => undefined) // keep the old index; the next event requests it again
      .finally(() => {
        this.indexBusy = false;
      });
  }

  private useIndex(index: ReplayIndex): void {
    const first = !this.state.index;
    this.moments.positions.use(index);
    this.set({ index });
    if (first && !this.state.playing) this.set({ position: this.placeOf(this.state.at) });
  }

  /** The position of a playhead that shows the events before an offset. */
  private placeOf(at: number): number {
    const { positions } = this.moments;
    if (positions.axis(this.moments.head) === "events") return at;
    return positions.of(at - 1) ?? this.state.position;
  }

  /** Updates the axis and its length. When the first second has passed, events become time. */
  private measure(): void {
    const { positions, head } = this.moments;
    const axis = positions.axis(head);
    if (axis !== this.state.axis) {
      this.state.axis = axis;
      this.state.position = this.placeOf(this.state.at);
    }
    this.state.length = axis === "events" ? head : positions.length(head);
  }

  // Seeking

  private clamp(at: number): number {
    return Math.max(Math.min(1, this.moments.head), Math.min(Math.floor(at) || 0, this.moments.head));
  }

  /** Shows the events before an offset. If it is playing, it continues from there. */
  seek = (at: number): void => {
    this.set({ live: false, span: undefined });
    void this.show(this.clamp(at));
  };

  /** Plays from an offset. */
  playFrom = (at: number): void => {
    this.lastFrame = this.now();
    this.set({ playing: true, live: false, span: undefined });
    void this.show(this.clamp(at));
  };

  /** Plays the events from an offset to before another one, then stops. A short part is played slowly. */
  playSpan = (from: number, to: number): void => {
    this.playFrom(from);
    this.set({ span: { to: this.clamp(to), speed: spanSpeed(this.lengthOf(from, to), this.state.speed) } });
  };

  /** How long events take at normal speed, in milliseconds; endless if their positions are not known. */
  private lengthOf(from: number, to: number): number {
    if (this.state.axis === "events") return ((to - from) / eventsPerSecond) * 1000;
    const { positions } = this.moments;
    return (positions.of(to - 1) ?? Number.POSITIVE_INFINITY) - (positions.of(from) ?? 0);
  }

  /** Shows the events up to a position on the axis. */
  seekPosition = (to: number): void => {
    if (!this.moments.positions.known(this.moments.head)) return; // the index is on its way
    this.measure();
    const ms = Math.max(0, Math.min(to, this.state.length));
    if (this.state.axis === "events") {
      this.seek(Math.round(ms));
      return;
    }
    this.set({ live: false, span: undefined });
    const asked = ++this.seekCount;
    if (this.moments.whole) {
      void this.show(this.clamp(this.moments.until(ms, 0, this.moments.head)), ms);
      return;
    }
    const near = offsetNear(ms, this.state.index, this.moments.head);
    if (this.moments.has(Math.max(0, near.from - 1), near.to)) {
      void this.show(this.clamp(this.moments.until(ms, near.from, near.to)), ms);
      return;
    }
    this.set({ position: ms, seeking: true });
    const wanted = () => asked === this.seekCount;
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
    this.set({ live: true, playing: false, span: undefined });
    void this.show(this.moments.head);
  };

  /** Goes to the next or previous event, or visible item: the end of a message, a tool call, a change of state. */
  step = (by: 1 | -1, unit: "item" | "event"): void => {
    if (unit === "event") {
      this.seek(this.state.at + by);
      return;
    }
    let offset = by > 0 ? this.state.at : this.state.at - 2;
    for (let e = this.event(offset); e && !isStep(e); e = this.event(offset)) offset += by;
    this.seek(offset + 1);
  };

  /** Goes to the next or previous marker that matches. */
  toMarker = (by: 1 | -1, matches: (m: Marker) => boolean): void => {
    const markers = this.state.index?.markers.filter(matches) ?? [];
    const m =
      by > 0 ? markers.find((x) => x.offset >= this.state.at) : markers.findLast((x) => x.offset < this.state.at - 1);
    if (m) this.seek(m.offset + 1);
  };

  /** Moves the playhead, and shows the conversation there once its events are loaded. */
  private async show(at: number, position?: number): Promise<void> {
    const asked = ++this.seekCount;
    if (this.showLoaded(at, position)) return;
    this.set({ at, seeking: true, ...(position === undefined ? {} : { position }) });
    try {
      await this.moments.load(at);
      if (asked !== this.seekCount) return;
      if (!this.showLoaded(at, position)) {
        await this.moments.loadKeyframe(at); // a jump between the keyframe and the offset
        if (asked !== this.seekCount) return;
        this.showLoaded(at, position);
      }
      if (this.state.live && this.moments.head > at) void this.show(this.moments.head); // more events arrived meanwhile
    } catch (error) {
      if (asked === this.seekCount) this.set({ error, seeking: false });
    }
  }

  /** Shows the conversation at an offset if it can be folded from the loaded events. */
  private showLoaded(at: number, position?: number): boolean {
    const c = this.moments.fold(at);
    if (!c) return false;
    this.current = c;
    this.set({ at, position: position ?? this.placeOf(at), seeking: false, error: undefined });
    if (!this.state.playing) this.tick(); // in this frame, not in the next one
    return true;
  }

  // Playing

  play = (): void => {
    if (!this.state.playing && !(this.state.live && hasOpenRun(this.state.view?.session.status))) this.toggle();
  };

  pause = (): void => {
    if (this.state.playing || this.state.live) this.set({ playing: false, live: false });
  };

  /** Plays or pauses. At the end it plays from the start. Live with an active run, it pauses. */
  toggle = (): void => {
    const { playing, live, at, head, view } = this.state;
    if (playing || (live && hasOpenRun(view?.session.status))) {
      this.set({ playing: false, live: false });
      return;
    }
    this.lastFrame = this.now();
    this.set({ playing: true, live: false });
    if (live || at >= head) this.seek(1);
  };

  setSpeed = (speed: number): void => {
    const { span } = this.state;
    this.set({ speed, span: span && { ...span, speed } });
  };

  setSkipIdle = (skipIdle: boolean): void => this.set({ skipIdle });

  private advance(): void {
    const now = this.now();
    const passed = Math.max(0, now - this.lastFrame);
    this.lastFrame = now;
    if (this.state.seeking || !this.current) return; // wait until the events are loaded
    this.measure();
    const { positions } = this.moments;
    const byEvents = this.state.axis === "events";
    const rate = (this.state.span?.speed ?? this.state.speed) * (byEvents ? eventsPerSecond / 1000 : 1);
    let position = this.state.position + passed * rate;
    let { at } = this.state;
    const end = Math.min(this.moments.head, this.state.span?.to ?? this.moments.head);
    while (at < end) {
      const e = this.event(at);
      if (!e) {
        this.loadAhead(at);
        break;
      }
      const when = byEvents ? at + 1 : (positions.of(at) ?? position);
      if (when > position) {
        if (byEvents || !this.state.skipIdle || when - this.moments.positionBefore(at, position) <= idleMs) break;
        position = when;
      }
      if (this.now() - now > frameBudgetMs) {
        position = Math.min(position, when);
        break;
      }
      at++;
      if (jumpOf(e)) {
        void this.show(at, position);
        return;
      }
      this.current.apply(e);
    }
    if (at >= end && this.state.span) {
      this.set({ at, position: this.placeOf(at), playing: false, span: undefined });
      return;
    }
    if (at === this.moments.head) {
      const running = hasOpenRun(this.current.snapshot().session.status);
      this.set({ at, position: this.placeOf(at), playing: false, live: running && !this.finished });
      return;
    }
    this.set({ at, position });
    if (!this.moments.has(at, at + chunkSize / 2))
      void this.moments.loadEvents(at, at + chunkSize).catch(() => undefined);
  }

  private loadAhead(at: number): void {
    const asked = ++this.seekCount;
    this.set({ seeking: true });
    this.moments.loadEvents(at, at + chunkSize).then(
      () => asked === this.seekCount && this.set({ seeking: false }),
      (error) => asked === this.seekCount && this.set({ error, seeking: false, playing: false }),
    );
  }

  // Publishing

  private set(changed: Partial<DeckState>): void {
    Object.assign(this.state, changed);
    if (this.scheduled) return;
    this.scheduled = true;
    const ticks = this.ticks;
    this.frame(() => ticks === this.ticks && this.tick());
  }

  /** Notifies the listeners of changes, at most once a frame. */
  private tick(): void {
    this.scheduled = false;
    this.ticks++;
    if (this.state.playing) this.advance();
    this.measure();
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
