import type { Event } from "../fold/types";
import { ApiError, api, query, sessionPath } from "./api";
import type { PresenceEvent } from "./people";

/**
 * How a stream is: connecting for the first time, live (what was there before is
 * still coming), caught up, waiting to connect again, given up, or at its end.
 */
export interface Connection {
  state: "connecting" | "live" | "caught-up" | "reconnecting" | "failed" | "ended";
  attempt?: number; // reconnecting: which of attempts
  reason?: string; // ended: closed or deleted
}

export const attempts = 5;
const firstWait = 1000;

type Source = Pick<EventSource, "close" | "addEventListener" | "readyState">;

export interface Outside {
  open: (url: string) => Source;
  /** Why nothing can follow an offset any more: the session is closed or deleted. */
  over: (id: string, from: number) => Promise<string | undefined>;
  setTimeout: (f: () => void, ms: number) => unknown;
  clearTimeout: (timer: unknown) => void;
}

const browser: Outside = {
  open: (url) => new EventSource(url),
  over,
  setTimeout: (f, ms) => setTimeout(f, ms),
  clearTimeout: (timer) => clearTimeout(timer as number),
};

async function over(id: string, from: number): Promise<string | undefined> {
  try {
    const { closed, head } = await api.session(id);
    return closed && head <= from ? "closed" : undefined;
  } catch (err) {
    return err instanceof ApiError && (err.kind === "not_found" || err.kind === "gone") ? "deleted" : undefined;
  }
}

/** readyState of a source whose server has answered with something other than a stream. */
const closed = 2;

export interface Listener {
  onEvent: (e: Event) => void;
  onConnection: (c: Connection) => void;
  /** Who comes, goes and moves; undefined when who is there is told anew. */
  onPresence?: (e?: PresenceEvent) => void;
}

/**
 * Follows the events of a session by offset: each comes once, in order, whatever
 * happens to the connection. The browser's own way to connect again does not say
 * how it stands and never gives up, so each connection is used once.
 */
export class Follower {
  private readonly id: string;
  private readonly listener: Listener;
  private readonly outside: Outside;
  private source: Source | undefined;
  private timer: unknown;
  private next = 0;
  private failures = 0;

  constructor(id: string, listener: Listener, outside: Outside = browser) {
    this.id = id;
    this.listener = listener;
    this.outside = outside;
  }

  /** Begins at an offset. */
  start(from: number): void {
    this.stop();
    this.next = from;
    this.failures = 0;
    this.listener.onConnection({ state: "connecting" });
    this.connect();
  }

  /** Tries again at once, and as often as at first. */
  reconnect(): void {
    this.start(this.next);
  }

  stop(): void {
    this.outside.clearTimeout(this.timer);
    this.source?.close();
    this.source = undefined;
  }

  private connect(): void {
    const source = this.outside.open(
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
      const e = whole<PresenceEvent>(data);
      if (e) this.listener.onPresence?.(e);
    });
    on("end", (data) => this.end(data));
    on("error", () => (source.readyState === closed ? void this.refused(source) : this.lost()));
  }

  private receive(data: string): void {
    const e = whole(data);
    if (!e || e.offset > this.next) {
      this.lost(); // nothing is to be missing: what comes again from here is whole
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
      // it has ended all the same
    }
    this.ended(reason);
  }

  private ended(reason?: string): void {
    this.stop();
    this.listener.onConnection(reason === undefined ? { state: "ended" } : { state: "ended", reason });
  }

  /** A browser does not tell which answer it got, and 204 says that nothing is to come. */
  private async refused(source: Source): Promise<void> {
    const reason = await this.outside.over(this.id, this.next);
    if (this.source !== source) return;
    if (reason) this.ended(reason);
    else this.lost();
  }

  private lost(): void {
    this.stop();
    if (this.failures >= attempts) {
      this.listener.onConnection({ state: "failed" });
      return;
    }
    const wait = firstWait * 2 ** this.failures;
    this.failures++;
    this.listener.onConnection({ state: "reconnecting", attempt: this.failures });
    this.timer = this.outside.setTimeout(() => this.connect(), wait);
  }
}

/** An event, unless it was cut off in the middle. */
function whole<E = Event>(data: string): E | undefined {
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}
