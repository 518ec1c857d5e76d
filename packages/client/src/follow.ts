import { type Environment, surroundings } from "./environment.ts";
import { TapedeckError } from "./errors.ts";
import type { Event } from "./fold/types.ts";
import { type Frame, Frames } from "./frames.ts";
import { failure, foreign, type Http, isType, query, sessionPath } from "./http.ts";
import type { PresenceEvent } from "./people.ts";
import { type Place, visited, visitPause } from "./places.ts";

/**
 * The state of a stream: connecting for the first time, live (earlier events are
 * still arriving), caught up, waiting to reconnect, failed (the server refused), or ended.
 */
export interface Connection {
  state: "connecting" | "live" | "caught-up" | "reconnecting" | "failed" | "ended";
  attempt?: number; // reconnecting: the number of this attempt, since the last event
  inMs?: number; // reconnecting: the wait before it
  error?: TapedeckError; // reconnecting, failed: why
  reason?: string; // ended: "closed", "terminal" or "deleted"
}

export interface FollowQuery {
  /** The first offset wanted; 0 without it. */
  from?: number | undefined;
  /** The `incarnation` of the stream that has read up to `from`: another history than that is refused ("replaced"). */
  incarnation?: string | undefined;
  /** "terminal": end after the terminal event of `invocation` or, without one, of the next run. */
  until?: "terminal" | undefined;
  channel?: string | readonly string[] | undefined;
  thread?: string | readonly string[] | undefined;
  type?: string | readonly string[] | undefined;
  invocation?: string | readonly string[] | undefined;
  view?: "all" | "effective" | undefined;
}

export interface StreamOptions extends FollowQuery {
  signal?: AbortSignal | undefined;
  onStatus?: ((c: Connection) => void) | undefined;
  /** Who joins, moves and leaves; undefined when a new connection starts to resend the roster. */
  onPresence?: ((e?: PresenceEvent) => void) | undefined;
  /** A connection that is silent for this long is replaced, in milliseconds; the server sends something every 15 s. 0 for never. */
  stallMs?: number | undefined;
  environment?: Environment | undefined;
}

const defaultStallMs = 40_000;
/** After a sleep, a connection that was silent for longer than the server's heartbeat is replaced at once. */
const wakeMs = 20_000;
/** A stream without a place stays for this long after it has caught up: what the server sends then is the roster. */
const stayMs = 300;
/** A stream without a place that has not caught up continues in its next connection after this time. */
const visitMs = 1000;
const [firstWaitMs, longestWaitMs] = [500, 15_000];

/** The wait before an attempt. It is random by a half, so that the clients of a server that restarts do not return together. */
function waitBefore(attempt: number, random: number): number {
  return Math.min(firstWaitMs * 2 ** Math.min(attempt - 1, 10), longestWaitMs) * (0.5 + random / 2);
}

/**
 * Follows a session by offset: each event is there once and in order, through lost
 * connections, restarts of the server and sleep. It tries again until the server
 * refuses: any status but 408, 429 and those from 500 on.
 */
export class Stream {
  private readonly http: Http;
  private readonly session: string;
  private readonly o: StreamOptions;
  private readonly env: Environment;
  private readonly filtered: boolean;
  /** Which history of the session this follows, an opaque text; "" as long as it is not known. */
  incarnation: string;
  private next: number;
  private attempt = 0;
  private ended = false;
  private opened = false; // there was a stream at this address
  private caughtUp = false; // this connection has
  private visiting = false; // it had caught up and was closed, because it has no place
  private heardAt = 0;
  private hurry: (() => void) | undefined; // ends the wait
  private cut: AbortController | undefined; // of the connection

  constructor(http: Http, session: string, o: StreamOptions = {}) {
    this.http = http;
    this.session = session;
    this.o = o;
    this.env = o.environment ?? surroundings;
    this.next = o.from ?? 0;
    this.incarnation = o.incarnation ?? "";
    this.filtered = [o.channel, o.thread, o.type, o.invocation, o.view].some((f) => f !== undefined);
  }

  /** Yields the events in the portions in which they arrive. The connection is read only as fast as they are taken. */
  async *batches(): AsyncGenerator<Event[], void, void> {
    const stopWaking = this.env.onWake(() => this.wake());
    const stop = () => {
      this.cut?.abort();
      this.hurry?.();
    };
    this.o.signal?.addEventListener("abort", stop);
    this.tell({ state: "connecting" });
    try {
      while (!this.ended) {
        this.o.signal?.throwIfAborted();
        try {
          yield* this.connect();
          if (!this.ended) throw lost("the stream was cut off");
        } catch (error) {
          this.o.signal?.throwIfAborted();
          this.visiting = error === visited && (this.visiting || this.caughtUp);
          if (error === visited) await this.pause(visitPause());
          else await this.later(error);
        }
      }
    } finally {
      this.cut?.abort();
      this.o.signal?.removeEventListener("abort", stop);
      stopWaking();
    }
  }

  /** Connects now: it ends the wait before the next attempt. */
  reconnect(): void {
    this.attempt = 0;
    this.hurry?.();
  }

  private tell(c: Connection): void {
    this.o.onStatus?.(c);
  }

  private wake(): void {
    if (this.hurry) this.reconnect();
    else if (this.heardAt > 0 && this.env.now() - this.heardAt > wakeMs) this.cut?.abort(lost("the device slept"));
  }

  private path(): string {
    const { until, channel, thread, type, invocation, view } = this.o;
    const from = this.o.from ?? 0;
    // The connection may have broken after the terminal event: given the last event, the server looks at it.
    const cursor =
      until && this.next > from ? { lastEventId: this.cursor(this.next - 1) } : { fromOffset: this.cursor(this.next) };
    const filter = { until, channel, thread, type, invocation, view };
    return sessionPath(this.session, "stream") + query({ ...cursor, ...filter, presence: this.o.onPresence && "live" });
  }

  /** An offset, with which the server recognises that the session has another history by now. */
  private cursor(offset: number): number | string {
    return this.incarnation ? `${offset}${this.incarnation}` : offset;
  }

  private async *connect(): AsyncGenerator<Event[], void, void> {
    const cut = new AbortController();
    this.cut = cut;
    this.caughtUp = false;
    let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
    let place: Place | undefined;
    let stay: unknown; // the timer of a stream without a place
    try {
      place = await this.env.place(this.http.root, "follow", () => cut.abort(visited));
      const headers = { Accept: "text/event-stream" };
      const response = await this.watch(cut, () => this.http.open(this.path(), { headers, signal: cut.signal }));
      if (response.status === 204) return this.end(this.o.until ?? "closed");
      if (!response.ok) throw await this.watch(cut, () => failure(response));
      if (!isType(response, "text/event-stream") || !response.body) throw foreign(response, "a stream of events");
      this.opened = true;
      if (!this.visiting) this.tell({ state: "live" });
      const frames = new Frames();
      const began = this.env.now();
      reader = response.body.getReader();
      const from = reader;
      while (!this.ended) {
        const { done, value } = await this.watch(cut, () => from.read());
        if (done) return;
        const events = this.take(frames.take(value));
        const late = this.env.now() - began > visitMs; // it has so many events, or they are taken slowly
        if (!place && (this.caughtUp || late)) stay ??= this.env.setTimeout(() => cut.abort(visited), stayMs);
        if (events.length > 0) yield events;
        cut.signal.throwIfAborted();
      }
    } catch (error) {
      throw cut.signal.aborted && !this.o.signal?.aborted ? cut.signal.reason : error;
    } finally {
      this.heardAt = 0;
      cut.abort();
      place?.leave();
      this.env.clearTimeout(stay);
      reader?.cancel().catch(() => undefined); // of a runtime whose abort does not end the body
    }
  }

  /** Waits for the server, but not for longer than a living connection is silent. */
  private async watch<T>(cut: AbortController, f: () => Promise<T>): Promise<T> {
    const { stallMs = defaultStallMs } = this.o;
    this.heardAt = this.env.now();
    const seconds = Math.round(stallMs / 1000);
    const stalled = () => cut.abort(lost(`the stream was silent for ${seconds} s`));
    const timer = stallMs > 0 ? this.env.setTimeout(stalled, stallMs) : undefined;
    let abort: (() => void) | undefined;
    try {
      // A fake or an old fetch may ignore its signal, so the wait itself ends, too.
      const aborted = new Promise<never>((_, reject) => {
        abort = () => reject(cut.signal.reason);
        cut.signal.addEventListener("abort", abort);
      });
      cut.signal.throwIfAborted();
      return await Promise.race([f(), aborted]);
    } finally {
      if (abort) cut.signal.removeEventListener("abort", abort);
      if (timer !== undefined) this.env.clearTimeout(timer);
      this.heardAt = this.env.now();
    }
  }

  /** The new events among frames. A gap or half an event breaks the connection: it is read again from the last event. */
  private take(frames: Frame[]): Event[] {
    const events: Event[] = [];
    for (const f of frames) {
      if ("life" in f && f.life) this.incarnation = f.life;
      if (f.kind === "event") {
        if (f.event.offset < this.next) continue; // a proxy's replay
        if (f.event.offset > this.next && !this.filtered) return this.broken(events);
        events.push(f.event);
        [this.next, this.attempt] = [f.next, 0];
      } else if (f.kind === "broken") return this.broken(events);
      else if (f.kind === "presence") this.o.onPresence?.(f.event);
      else {
        if (f.next !== undefined && this.filtered) this.next = Math.max(this.next, f.next);
        this.attempt = 0;
        if (f.kind === "end") {
          this.end(f.reason);
          return events;
        }
        if (!this.visiting) this.tell({ state: "caught-up" });
        this.caughtUp = true;
        this.o.onPresence?.();
      }
    }
    return events;
  }

  private broken(events: Event[]): Event[] {
    this.cut?.abort(lost("the stream had a gap"));
    return events;
  }

  private end(reason: string | undefined): void {
    this.ended = true;
    this.tell(reason === undefined ? { state: "ended" } : { state: "ended", reason });
  }

  /** Waits before the next attempt, or fails with what the server refused. */
  private async later(given: unknown): Promise<void> {
    const error = given instanceof TapedeckError ? given : lost("the connection was lost", given);
    // There was a stream before, so the session is deleted.
    if (this.opened && (error.kind === "not_found" || error.kind === "gone")) return this.end("deleted");
    if (!passes(error, this.opened)) {
      this.ended = true;
      this.tell({ state: "failed", error });
      throw error;
    }
    const attempt = ++this.attempt;
    const inMs = Math.max(waitBefore(attempt, this.env.random()), error.retryAfterMs ?? 0);
    this.tell({ state: "reconnecting", attempt, inMs, error });
    await this.pause(inMs);
  }

  /** Waits, unless it shall hurry. */
  private async pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = this.env.setTimeout(resolve, ms);
      this.hurry = () => {
        this.env.clearTimeout(timer);
        resolve();
      };
      if (this.o.signal?.aborted) this.hurry();
    });
    this.hurry = undefined;
  }
}

function lost(message: string, cause?: unknown): TapedeckError {
  return new TapedeckError("unreachable", message, { cause });
}

/**
 * Whether an error may pass by itself. The page of a proxy with a status of success may if there was a stream
 * before it: the proxy is up before the server is. Otherwise the address is wrong.
 */
function passes(e: TapedeckError, opened: boolean): boolean {
  return e.retryable || (opened && e.kind === "protocol" && e.status >= 200 && e.status < 300);
}

/**
 * Follows the events of a session, each exactly once. It ends when the session or the
 * run ends, and fails if the session is deleted, the server refuses, or the signal aborts.
 */
export async function* follow(http: Http, session: string, o: StreamOptions = {}): AsyncGenerator<Event, void, void> {
  let reason: string | undefined;
  const onStatus = (c: Connection) => {
    reason = c.reason;
    o.onStatus?.(c);
  };
  for await (const events of new Stream(http, session, { ...o, onStatus }).batches()) yield* events;
  if (reason === "deleted") throw new TapedeckError("not_found", `session ${session} was deleted`, { status: 404 });
}

export interface Listener {
  onEvent: (e: Event) => void;
  onConnection: (c: Connection) => void;
  /** A user joined, moved or left; undefined when the server starts to resend the roster. */
  onPresence?: (e?: PresenceEvent) => void;
}

/** Follows a session for a listener, from an offset that may change. A stopped follower reports nothing. */
export class Follower {
  private readonly http: Http;
  private readonly id: string;
  private readonly listener: Listener;
  private readonly environment: Environment | undefined;
  private stream: Stream | undefined;
  private abort: AbortController | undefined;
  private next = 0;
  private incarnation = ""; // of what the listener has got
  private over = false; // failed or ended

  constructor(http: Http, id: string, listener: Listener, environment?: Environment) {
    this.http = http;
    this.id = id;
    this.listener = listener;
    this.environment = environment;
  }

  /** Starts at an offset. */
  start(from: number): void {
    this.stop();
    this.next = from;
    this.over = false;
    const { listener } = this;
    const abort = new AbortController();
    const mine = <A extends unknown[]>(f: (...a: A) => void) => {
      return (...a: A) => abort.signal.aborted || f(...a);
    };
    this.abort = abort;
    this.stream = new Stream(this.http, this.id, {
      from,
      incarnation: this.incarnation,
      signal: abort.signal,
      onStatus: mine((c) => this.tell(c)),
      onPresence: listener.onPresence && mine((e?: PresenceEvent) => listener.onPresence?.(e)),
      environment: this.environment,
    });
    void this.read(this.stream, abort.signal);
  }

  private async read(stream: Stream, signal: AbortSignal): Promise<void> {
    try {
      for await (const events of stream.batches()) {
        for (const e of events) {
          if (signal.aborted) return;
          this.next = e.offset + 1;
          this.incarnation = stream.incarnation;
          this.listener.onEvent(e);
        }
      }
    } catch (error) {
      if (!signal.aborted && !this.over) throw error; // a fault of the listener: not a state of the connection
    }
  }

  private tell(c: Connection): void {
    this.incarnation = this.stream?.incarnation || this.incarnation;
    this.over = c.state === "failed" || c.state === "ended";
    // A session that was there before and is refused now has been deleted.
    const deleted = c.state === "failed" && (c.error?.kind === "not_found" || c.error?.kind === "gone");
    this.listener.onConnection(deleted ? { ...c, state: "ended", reason: "deleted" } : c);
  }

  /** Reconnects at once. */
  reconnect(): void {
    if (this.over || !this.stream) this.start(this.next);
    else this.stream.reconnect();
  }

  stop(): void {
    this.abort?.abort();
    this.abort = undefined;
    this.stream = undefined;
  }
}
