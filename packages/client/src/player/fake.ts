// A session in memory, for tests.

import type { EventsPage } from "../api.ts";
import { Clock } from "../fold/clock.ts";
import { Conversation } from "../fold/conversation.ts";
import { jumpOf, Timeline } from "../fold/timeline.ts";
import type { Event, Marker, ReplayIndex, SessionEntry, Snapshot, Stretch } from "../fold/types.ts";
import type { Listener } from "../follow.ts";
import type { DeckOptions } from "./state.ts";

export const start = Date.parse("2026-01-05T12:00:00.000Z");
export const time = (ms: number) => new Date(start + ms).toISOString();

/** Turns of a user and an agent that streams its answer: one event every 100 ms. */
export function turns(count: number, deltas = 4): Event[] {
  const events: Event[] = [];
  const add = (type: string, channel: string, data: Event["data"], invocation?: string) => {
    const offset = events.length;
    events.push({
      offset,
      type,
      channel,
      timestamp: time(offset * 100),
      ...(invocation ? { invocation } : {}),
      data: data ?? {},
    });
  };
  add("session.created", "session", { title: "Turns" });
  for (let i = 1; i <= count; i++) {
    const inv = `i${i}`;
    add("message.added", "chunks", { message: { id: `u${i}`, role: "user", content: `ask ${i}` } }, inv);
    add("RUN_STARTED", "agentState", { runId: inv }, inv);
    add("TEXT_MESSAGE_START", "chunks", { messageId: `a${i}` }, inv);
    for (let d = 0; d < deltas; d++)
      add("TEXT_MESSAGE_CONTENT", "chunks", { messageId: `a${i}`, delta: `${i}.${d} ` }, inv);
    add("TEXT_MESSAGE_END", "chunks", { messageId: `a${i}` }, inv);
    add("RUN_FINISHED", "agentState", { runId: inv }, inv);
  }
  return events;
}

export function rewound(offset: number, to: number, at = offset * 100): Event {
  const data = { marker: `rew_${offset}`, toOffset: to };
  return { offset, type: "session.rewound", channel: "session", timestamp: time(at), data };
}

/** The conversation as of an offset, folded from the start. */
export function folded(events: Event[], at: number): Snapshot {
  const c = new Conversation().keep();
  c.follow(new Timeline(events.map(jumpOf).filter((j) => j !== undefined)), at);
  for (const e of events.slice(0, at)) c.apply(e);
  return c.snapshot();
}

export const texts = (s: Snapshot | undefined) => s?.messages.map((m) => `${m.role}: ${m.text}`);

/** A fake server and browser. Nothing happens until the test calls for it. */
export class World {
  events: Event[];
  clock = 0;
  asked: string[] = []; // requests to the server
  head?: number; // the head that the server reports, if not the real one
  private frames: (() => void)[] = [];
  private listener: Listener | undefined;
  private followedFrom = 0;

  constructor(events: Event[]) {
    this.events = events;
  }

  options(): DeckOptions {
    return {
      now: () => this.clock,
      frame: (f) => this.frames.push(f),
      follow: (_, listener) => {
        this.listener = listener;
        return {
          start: (from) => {
            this.followedFrom = from;
            this.asked.push(`follow ${from}`);
          },
          stop: () => this.asked.push("stop"),
          reconnect: () => this.asked.push("reconnect"),
        };
      },
      api: {
        session: async (id) => ({ id, kind: "session", head: this.head ?? this.events.length }) as SessionEntry,
        events: async (_, q = {}): Promise<EventsPage> => {
          const [from, limit] = [q.from ?? 0, q.limit ?? 1000];
          this.asked.push(`events ${from}+${limit}`);
          const events = this.events.slice(from, from + limit);
          return { events, next: from + events.length, head: this.events.length, closed: false };
        },
        snapshot: async (_, q = {}) => {
          const at = q.at ?? this.events.length;
          this.asked.push(`snapshot ${at}`);
          return folded(this.events, at);
        },
        replayIndex: async () => this.index(),
      },
    };
  }

  private index(): ReplayIndex {
    const markers: Marker[] = [];
    const stretches: Stretch[] = [];
    const width_ms = 1024;
    const counts: number[] = [];
    const clock = new Clock();
    for (const e of this.events) {
      const started = clock.firstMs !== undefined;
      const { skipped } = clock.apply(e);
      const [at, position_ms] = [e.timestamp, clock.durationMs];
      if (skipped || (!started && clock.firstMs !== undefined)) stretches.push({ offset: e.offset, at, position_ms });
      if (e.type === "message.added") markers.push({ offset: e.offset, kind: "user", thread: "main", at, position_ms });
      const slot = Math.floor(position_ms / width_ms);
      while (counts.length <= slot) counts.push(0);
      counts[slot]!++;
    }
    return {
      from: 0,
      at: this.events.length,
      events: this.events.length,
      axis: clock.axis,
      first_at: new Date(clock.firstMs ?? 0).toISOString(),
      last_at: new Date(clock.lastMs).toISOString(),
      last_offset: clock.lastOffset,
      duration_ms: clock.durationMs,
      open_runs: [...clock.openRuns],
      has_ended: clock.hasEnded,
      stretches,
      invocations: [],
      runs: 0,
      markers,
      marked: {},
      gaps: [],
      density: { from_ms: 0, width_ms, counts },
    };
  }

  /** Answers all requests, and draws. */
  async settle(): Promise<void> {
    for (let i = 0; i < 50; i++) await Promise.resolve();
    this.draw();
    for (let i = 0; i < 50; i++) await Promise.resolve();
    this.draw();
  }

  /** Draws one frame; returns whether a callback was waiting for it. */
  draw(): boolean {
    const frames = this.frames;
    this.frames = [];
    for (const f of frames) f();
    return frames.length > 0;
  }

  /** Advances the clock, with a frame every 16 ms. */
  async pass(ms: number): Promise<void> {
    for (const end = this.clock + ms; this.clock < end; ) {
      this.clock = Math.min(this.clock + 16, end);
      this.draw();
      for (let i = 0; i < 20; i++) await Promise.resolve();
    }
  }

  /** Appends events, and delivers them like the stream. */
  append(...events: Event[]): void {
    for (const e of events) {
      this.events.push(e);
      if (e.offset >= this.followedFrom) this.listener?.onEvent(e);
    }
  }
}
