import type { AnswerOptions, Api, AppendOptions, AskedPermission, EventsQuery, SnapshotQuery } from "./api.ts";
import type { Event } from "./fold/types.ts";
import { Follower, follow, type Listener, type StreamOptions } from "./follow.ts";
import type { CallOptions, Http } from "./http.ts";
import { EventProducer, type ProducerOptions } from "./producer.ts";
import type * as wire from "./wire.ts";

export interface FollowOptions extends Omit<StreamOptions, "environment" | "onPresence"> {}

/** The events of a server as this version of the client knows them, and those that it does not know. */
type SessionEvent = wire.SessionEvent;

/** Where a player reads the events of a session. */
export interface PlayerSource {
  id: string;
  api: Pick<Api, "session" | "events" | "snapshot" | "replayIndex">;
  follow: (id: string, l: Listener) => Pick<Follower, "start" | "stop" | "reconnect">;
}

/** Where a rewind goes: before an invocation or a marker, or before the event at an offset. */
export type RewindTo = { before: string } | { offset: number };

/**
 * One session. It holds no state and no connection: its members are requests. All fail
 * with a TapedeckError, or with the reason of an aborted signal.
 */
export class Session {
  readonly id: string;
  private readonly api: Api;
  private readonly http: Http;

  constructor(id: string, api: Api, http: Http) {
    this.id = id;
    this.api = api;
    this.http = http;
  }

  /** What a player reads, see `@tapedeck/client/player`. */
  get source(): PlayerSource {
    return { id: this.id, api: this.api, follow: (id, listener) => new Follower(this.http, id, listener) };
  }

  info(o?: CallOptions): Promise<wire.SessionRow> {
    return this.api.session(this.id, o);
  }

  rename(title: string, o?: CallOptions): Promise<wire.Session> {
    return this.api.rename(this.id, title, o);
  }

  /** Closes the session. It stays closed. */
  close(o?: CallOptions): Promise<wire.SessionRow> {
    return this.api.close(this.id, o);
  }

  delete(o?: CallOptions): Promise<void> {
    return this.api.remove(this.id, o);
  }

  /** Starts a task. The server owns the run: it continues whether or not a client follows it. */
  task(t: string | wire.Task, o?: CallOptions): Promise<wire.Started> {
    return this.api.task(this.id, asTask(t), o);
  }

  /** The tasks that wait, in the order in which they will run, and the newest of those that have ended. */
  inputs(thread?: string, o?: CallOptions): Promise<wire.Input[]> {
    return this.api.inputs(this.id, thread, o);
  }

  /** Withdraws a task that waits. */
  withdraw(input: string, o?: CallOptions): Promise<wire.Input> {
    return this.api.withdraw(this.id, input, o);
  }

  /** Puts a task that waits before another one, or at the end. */
  move(input: string, before?: string, o?: CallOptions): Promise<wire.Input> {
    return this.api.move(this.id, input, before, o);
  }

  /** Gives a task that waits for an outside program to an open run of that program. */
  take(input: string, invocation: string, o?: CallOptions): Promise<wire.Taken> {
    return this.api.take(this.id, input, invocation, o);
  }

  /** Cancels a run; without an invocation the only open one. It answers when the run has ended. */
  cancel(invocation?: string, o?: CallOptions): Promise<wire.Cancelled> {
    return this.api.cancel(this.id, invocation, o);
  }

  /** Says that the program which writes a run is alive. `record` does it by itself. */
  renew(invocation: string, o?: CallOptions): Promise<wire.Renewed> {
    return this.api.renew(this.id, invocation, o);
  }

  /** Continues the newest run of a thread that was cancelled, interrupted or failed. */
  resume(t?: wire.Resume, o?: CallOptions): Promise<wire.Started> {
    return this.api.resume(this.id, t, o);
  }

  /** Answers a permission with the id of one of its options; without an option it is cancelled. */
  async answer(permission: string | AskedPermission, option?: string, o?: AnswerOptions): Promise<void> {
    await this.api.answer(this.id, typeof permission === "string" ? { id: permission } : permission, option, o);
  }

  rewind(to: RewindTo, o?: CallOptions): Promise<wire.Rewound> {
    return this.api.rewind(this.id, "before" in to ? { before_invocation_id: to.before } : { to_offset: to.offset }, o);
  }

  /** Undoes a rewind, a clear or an undo; without a marker the newest one. */
  undo(marker?: string, o?: CallOptions): Promise<wire.Rewound> {
    return this.api.undo(this.id, marker, o);
  }

  clear(thread?: string, o?: CallOptions): Promise<wire.Rewound> {
    return this.api.clear(this.id, thread, o);
  }

  /** A new session that shares the events below `at`, or all. */
  async fork(f?: wire.Fork, o?: CallOptions): Promise<Session> {
    const { id } = await this.api.fork(this.id, f, o);
    return new Session(id, this.api, this.http);
  }

  /** Appends events: all of them or none. When it answers, they are durable. */
  append(events: wire.NewEvent | wire.NewEvent[], o?: AppendOptions): Promise<wire.Appended> {
    return this.api.append(this.id, events, o);
  }

  /** A writer whose appends are stored once each, however often it must send them. */
  producer(id: string, o?: ProducerOptions): EventProducer {
    return new EventProducer(this.api, this.id, id, o);
  }

  /** The events to the head as it is when the last page is read. `limit` is the size of the pages. */
  async *events(q: Omit<EventsQuery, "reverse"> = {}, o?: CallOptions): AsyncGenerator<SessionEvent, void, void> {
    let { from = 0, cursor } = q;
    for (;;) {
      const page = await this.api.events(this.id, { limit: 1000, ...q, from, cursor }, o);
      yield* page.events as SessionEvent[];
      if (page.next <= from || page.next >= page.head) return;
      from = page.next;
      cursor = page.cursor; // a session that is created again meanwhile answers 410
    }
  }

  /**
   * The events that are there and those to come, each exactly once, through lost connections,
   * restarts of the server and sleep. It tries again until the server refuses. It ends when the
   * session is closed or, with `until`, when a run ends.
   */
  follow(o: FollowOptions = {}): AsyncGenerator<SessionEvent, void, void> {
    return follow(this.http, this.id, o) as AsyncGenerator<Event, void, void> as AsyncGenerator<
      SessionEvent,
      void,
      void
    >;
  }

  /** The conversation, folded by the server: now, or as it was before the event `at`. */
  snapshot(q?: SnapshotQuery, o?: CallOptions): Promise<wire.Snapshot> {
    return this.api.snapshot(this.id, q, o);
  }
}

export function asTask(t: string | wire.Task): wire.Task {
  return typeof t === "string" ? { task: t } : t;
}
