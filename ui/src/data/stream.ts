import type { Event } from "../fold/types";
import { ApiError, api, query, sessionPath } from "./api";
import type { PresenceEvent } from "./people";

/**
 * The state of a stream: connecting for the first time, live (earlier events are
 * still arriving), caught up, waiting to reconnect, failed (gave up), or ended.
 */
export interface Connection {
  state: "connecting" | "live" | "caught-up" | "reconnecting" | "failed" | "ended";
  attempt?: number; // reconnecting: the number of this attempt
  reason?: string; // ended: "closed" or "deleted"
}

export const maxAttempts = 5;
const firstWait = 1000;

type Source = Pick<EventSource, "close" | "addEventListener" | "readyState">;

export interface Environment {
  open: (url: string) => Source;
  /** Why no event can follow an offset: "closed" or "deleted"; undefined if one can. */
  endReason: (id: string, from: number) => Promise<string | undefined>;
  setTimeout: (f: () => void, ms: number) => unknown;
  clearTimeout: (timer: unknown) => void;
}

const browser: Environment = {
  open: (url) => new EventSource(url),
  endReason,
  setTimeout: (f, ms) => setTimeout(f, ms),
  clearTimeout: (timer) => clearTimeout(timer as number),
};

async function endReason(id: string, from: number): Promise<string | undefined> {
  try {
    const { closed, head } = await api.session(id);
    return closed && head <= from ? "closed" : undefined;
  } catch (err) {
    return err instanceof ApiError && (err.kind === "not_found" || err.kind === "gone") ? "deleted" : undefined;
  }
}

/** readyState of an EventSource that got a response other than a stream. */
const closed = 2;

export interface Listener {
  onEvent: (e: Event) => void;
  onConnection: (c: Connection) => void;
  /** A user joined, moved or left; undefined when the server starts to resend the roster. */
  onPresence?: (e?: PresenceEvent) => void;
}

/**
 * Follows the events of a session by offset: each is delivered once, in order, even
 * across reconnects. The browser's own reconnect reports no state and never gives
 * up, so each connection is used once.
 */
export class Follower {
  private readonly id: string;
  private readonly listener: Listener;
  private readonly environment: Environment;
  private source: Source | undefined;
  private timer: unknown;
  private next = 0;
  private failures = 0;

  constructor(id: string, listener: Listener, environment: Environment = browser) {
    this.id = id;
    this.listener = listener;
    this.environment = environment;
  }

  /** Starts at an offset. */
  start(from: number): void {
    this.stop();
    this.next = from;
    this.failures = 0;
    this.listener.onConnection({ state: "connecting" });
    this.connect();
  }

  /** Reconnects at once, and allows all attempts again. */
  reconnect(): void {
    this.start(this.next);
  }

  stop(): void {
    this.environment.clearTimeout(this.timer);
    this.source?.close();
    this.source = undefined;
  }

  private connect(): void {
    const source = this.environment.open(
      sessionPath(this.id, "stream") + query({ fromOffset: this.next, presence: this.listener.onPresence && "live" }),
    );
    this.source = source;
    const on = (type: string, f: (data: string) => void) =>
      source.addEventListener(type, (m) => {
        if (this.source === source) f((m as MessageEvent).data);
      });
    on("open", () => this.listener.onConnection({ state: "live" }));
    on("message", (data) => this.receive(data));
    on("caught-up", () => {
      this.failures = 0;
      this.listener.onConnection({ state: "caught-up" });
      this.listener.onPresence?.();
    });
    on("presence", (data) => {
      const e = parse<PresenceEvent>(data);
      if (e) this.listener.onPresence?.(e);
    });
    on("end", (data) => this.end(data));
    on("error", () => (source.readyState === closed ? void this.refused(source) : this.lost()));
  }

  private receive(data: string): void {
    const e = parse(data);
    if (!e || e.offset > this.next) {
      this.lost(); // a gap or half an event: reconnect and read again from the last event
      return;
    }
    if (e.offset < this.next) return;
    this.failures = 0;
    this.next = e.offset + 1;
    this.listener.onEvent(e);
  }

  private end(data: string): void {
    let reason: string | undefined;
    try {
      reason = JSON.parse(data).reason;
    } catch {
      // malformed data: the stream has ended all the same
    }
    this.ended(reason);
  }

  private ended(reason?: string): void {
    this.stop();
    this.listener.onConnection(reason === undefined ? { state: "ended" } : { state: "ended", reason });
  }

  /** The browser hides the status of the response. A 204 means that no event can follow, so ask the server. */
  private async refused(source: Source): Promise<void> {
    const reason = await this.environment.endReason(this.id, this.next);
    if (this.source !== source) return;
    if (reason) this.ended(reason);
    else this.lost();
  }

  private lost(): void {
    this.stop();
    if (this.failures >= maxAttempts) {
      this.listener.onConnection({ state: "failed" });
      return;
    }
    const wait = firstWait * 2 ** this.failures;
    this.failures++;
    this.listener.onConnection({ state: "reconnecting", attempt: this.failures });
    this.timer = this.environment.setTimeout(() => this.connect(), wait);
  }
}

/** Parses an event; undefined if it was cut off. */
function parse<E = Event>(data: string): E | undefined {
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}
