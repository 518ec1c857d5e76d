import type { EventsPage } from "../api.ts";
import { Clock } from "../fold/clock.ts";
import type { Event, Marker, ReplayIndex, SessionEntry, Stretch } from "../fold/types.ts";
import type { PlayerSource, Session } from "../session.ts";
import { Deck } from "./deck.ts";
import type { DeckOptions } from "./state.ts";

/** The player of a session or a recording: a playhead, and the conversation as of it. */
export type Player = Deck;

/** A session in memory, such as an export of the format `json`. */
export interface Recording {
  session?: Partial<SessionEntry>;
  events: Event[];
  /** Marks and idle times; without it they are computed from the events. */
  index?: ReplayIndex;
}

export interface PlayerOptions extends Pick<DeckOptions, "now" | "frame"> {
  /** Where the playhead begins: before the event of this offset. Without it at the end, following what comes. */
  at?: number | undefined;
}

/** The player of a session of a server, or of a recording. Nothing is loaded before `open`. */
export function createPlayer(of: Session | Recording, o: PlayerOptions = {}): Player {
  const source = "events" in of && Array.isArray(of.events) ? recorded(of as Recording) : (of as Session).source;
  const { id, api, follow } = source;
  return new Deck(id, o.at, { api, follow, now: o.now, frame: o.frame, finished: "finished" in source });
}

/**
 * What a player reads of a session in memory. The export of a part, or of the active events only,
 * has gaps: its offsets begin at 0 again.
 */
export function recorded(r: Recording): PlayerSource & { finished: true } {
  const events = r.events.map((e, offset) => (e.offset === offset ? e : { ...e, offset }));
  const id = r.session?.id ?? "recording";
  const times = { created_at: events[0]?.timestamp ?? "", updated_at: events.at(-1)?.timestamp ?? "" };
  const entry: SessionEntry = { ...times, ...r.session, id, kind: "session", head: events.length };
  const page = (from: number, limit: number): EventsPage => {
    const some = events.slice(from, from + limit);
    return { events: some, next: from + some.length, head: events.length, closed: true };
  };
  return {
    finished: true,
    id,
    follow: () => ({ start: () => {}, stop: () => {}, reconnect: () => {} }),
    api: {
      session: async () => entry,
      events: async (_, q = {}) => page(q.from ?? 0, q.limit ?? 1000),
      replayIndex: async () => r.index ?? indexOf(events),
      snapshot: () => Promise.reject(new Error("all events of a recording are in memory")),
    },
  };
}

/** The recording time and the words of the user: enough to seek and to mark turns. */
function indexOf(events: Event[]): ReplayIndex {
  const clock = new Clock();
  const markers: Marker[] = [];
  const stretches: Stretch[] = [];
  for (const e of events) {
    const started = clock.firstMs !== undefined;
    const { skipped } = clock.apply(e);
    const place = { offset: e.offset, at: e.timestamp, position_ms: clock.durationMs };
    if (skipped || (!started && clock.firstMs !== undefined)) stretches.push(place);
    if (e.type === "message.added" && roleOf(e) === "user")
      markers.push({ ...place, kind: "user", thread: e.thread ?? "main" });
  }
  const time = (ms: number) => new Date(ms).toISOString();
  return {
    from: 0,
    at: events.length,
    events: events.length,
    axis: clock.axis,
    ...(clock.firstMs === undefined ? {} : { first_at: time(clock.firstMs), last_at: time(clock.lastMs) }),
    last_offset: clock.lastOffset,
    duration_ms: clock.durationMs,
    open_runs: [...clock.openRuns],
    has_ended: clock.hasEnded,
    invocations: [],
    runs: events.filter((e) => e.type === "RUN_STARTED").length,
    markers,
    marked: { user: markers.length },
    gaps: [],
    stretches,
    density: { from_ms: 0, width_ms: 0, counts: [] },
  };
}

function roleOf(e: Event): unknown {
  const message = e.data?.message;
  return typeof message === "object" && message !== null && "role" in message ? message.role : undefined;
}
