import { type Environment, surroundings } from "../environment.ts";
import { TapedeckError } from "../errors.ts";
import type { EventProducer } from "../producer.ts";
import type { Session } from "../session.ts";
import type { NewEvent } from "../wire.ts";
import { Outbox } from "./outbox.ts";

/** The status of a run: `running` until it ends, and then how it ended. */
export type RunStatus = "running" | "complete" | "failed" | "cancelled" | "interrupted";

export interface RecordingOptions {
  /** How long it waits for a server that is away, in milliseconds; two minutes without it. */
  giveUpMs?: number | undefined;
  /**
   * How long this program may be silent before the server takes it for dead and ends the run, in
   * milliseconds, at least 1000; 15 seconds without it. It renews the lease by itself.
   */
  leaseMs?: number | undefined;
  environment?: Environment | undefined;
}

/** The lease of a run without the option. */
export const defaultLeaseMs = 15_000;

const terminal = ["RUN_FINISHED", "RUN_ERROR"];

/**
 * A run in the log whose events its program makes itself: it writes them in the background, each
 * exactly once, and hears who else ends the run. `record` is the simple way.
 */
export class Recording {
  readonly session: Session;
  readonly invocation: string;
  /** Aborts when the run is ended by somebody else, or cannot be recorded any more. Its reason says why. */
  readonly signal: AbortSignal;
  status: RunStatus = "running";
  /** The offset of the first event of the run. */
  offset = -1;
  private readonly env: Environment;
  private everyMs: number; // between two looks
  private readonly producer: EventProducer;
  private readonly outbox: Outbox;
  private readonly stop = new AbortController();
  private readonly over = new AbortController(); // nobody listens any more
  private readonly answers = new Map<string, string | undefined>();
  private readonly waiting = new Set<() => void>(); // for an answer
  private ending = false;
  private silent = false; // since the last look
  private renewal: AbortController | undefined; // of the newest request for it
  private timer: unknown;

  private constructor(session: Session, invocation: string, o: RecordingOptions) {
    [this.session, this.invocation] = [session, invocation];
    this.env = o.environment ?? surroundings;
    this.everyMs = (o.leaseMs ?? defaultLeaseMs) / 3;
    this.signal = this.stop.signal;
    this.producer = this.producerOf(o.giveUpMs ?? 120_000);
    this.outbox = new Outbox(
      (events) => this.producer.append(events),
      async (error) => {
        const why = (await this.otherEnd(error)) ?? error;
        if (this.status === "running") this.status = "interrupted";
        this.lose(why);
        return why;
      },
    );
  }

  /**
   * Begins a run with its first events, which are durable then. It fails if the thread is busy. The
   * last of them is RUN_STARTED, with the lease.
   */
  static async begin(
    session: Session,
    invocation: string,
    events: NewEvent[],
    o: RecordingOptions = {},
  ): Promise<Recording> {
    const r = new Recording(session, invocation, o);
    const { first, head } = await r.producer.append(events);
    r.offset = first ?? head - events.length;
    void r.listen();
    r.look();
    return r;
  }

  /** A run that has begun at an offset, in another request. */
  static of(session: Session, invocation: string, offset: number, o: RecordingOptions = {}): Recording {
    const r = new Recording(session, invocation, o);
    r.offset = offset;
    void r.listen();
    r.look();
    return r;
  }

  /** Takes events. It answers at once, unless much waits for a slow server, and throws if the run has ended. */
  put(events: NewEvent[]): Promise<void> {
    this.check();
    if (this.signal.aborted) throw this.signal.reason;
    return this.enqueue(events);
  }

  /** Appends an event. It is durable then; one that is refused is an error here, and the run continues. */
  async append(event: NewEvent): Promise<void> {
    await this.put([]);
    await this.outbox.flush();
    this.silent = false;
    try {
      await this.producer.append(event);
    } catch (error) {
      const why = await this.otherEnd(error);
      if (why) this.lose(why);
      throw why ?? error;
    }
  }

  /** Waits until everything is durable. */
  flush(): Promise<void> {
    return this.outbox.flush();
  }

  /** Ends the run with its last events. */
  async end(events: NewEvent[], status: RunStatus): Promise<void> {
    this.check();
    this.ending = true; // before the events, because the follower hears them, too
    try {
      await this.enqueue(events);
      await this.outbox.flush();
      this.status = status;
    } finally {
      this.release();
    }
  }

  /** Ends a run of which an event was refused, with its last events. It does not fail: the server ends an abandoned run. */
  async abandon(events: NewEvent[]): Promise<void> {
    this.release();
    await this.producer.append(events).then(
      () => {
        this.status = "failed";
      },
      () => undefined,
    );
  }

  /** Aborts the signal. The run stays open until `end`. */
  abort(reason: unknown): void {
    this.stop.abort(reason);
    this.wake();
  }

  /** Waits for the answer to a question: the id of an option, undefined after a time-out or without an option. */
  async answer(question: string, timeoutMs?: number): Promise<string | undefined> {
    let late = false;
    const tooLate = () => {
      late = true;
      this.wake();
    };
    const timer = timeoutMs === undefined ? undefined : this.env.setTimeout(tooLate, timeoutMs);
    while (!this.answers.has(question) && !late && !this.ending && !this.signal.aborted)
      await new Promise<void>((resolve) => this.waiting.add(resolve));
    if (timer !== undefined) this.env.clearTimeout(timer);
    if (!this.answers.has(question)) this.signal.throwIfAborted();
    return this.answers.get(question);
  }

  private wake(): void {
    for (const f of this.waiting) f();
    this.waiting.clear();
  }

  private enqueue(events: NewEvent[]): Promise<void> {
    this.silent = false;
    const done = this.outbox.put(events);
    done.catch(() => undefined); // who does not wait hears it from the next call
    return done;
  }

  private check(): void {
    if (this.outbox.failure) throw this.outbox.failure.error;
    if (this.ending) throw new TapedeckError("invalid", `run ${this.invocation} has ended`);
  }

  private release(): void {
    this.ending = true;
    this.over.abort();
    this.renewal?.abort();
    if (this.timer !== undefined) this.env.clearTimeout(this.timer);
    this.wake();
  }

  /** The run has ended, or cannot be recorded any more. */
  private lose(why: unknown): void {
    this.outbox.fail(why);
    this.release();
    this.abort(why);
  }

  /** A writer that waits for a server that is away, but not without end. */
  private producerOf(giveUpMs: number): EventProducer {
    const gaveUp = new AbortController();
    let since = 0;
    return this.session.producer(this.invocation, {
      signal: gaveUp.signal,
      environment: this.env,
      onRetry: (attempt, error) => {
        if (attempt === 1) since = this.env.now();
        if (this.env.now() - since >= giveUpMs) gaveUp.abort(error);
      },
    });
  }

  /** A program that is silent says that it is alive, or the server ends its run. */
  private look(): void {
    this.renewal?.abort(); // a server that hangs is asked again
    this.renewal = undefined;
    if (this.silent) void this.renew();
    this.silent = true;
    this.timer = this.env.setTimeout(() => this.look(), this.everyMs);
  }

  private async renew(): Promise<void> {
    this.renewal = new AbortController();
    const { signal } = this.renewal;
    try {
      const { lease_ms } = await this.session.renew(this.invocation, { signal });
      this.everyMs = Math.min(this.everyMs, lease_ms / 3); // that of the server may be shorter
    } catch (error) {
      // Everything but the end of the run may pass: the next look tries again.
      const why = this.ending ? undefined : await this.otherEnd(error);
      if (why && !this.ending) this.lose(why);
    }
  }

  /** Hears answers, and who ends the run. */
  private async listen(): Promise<void> {
    const { invocation, offset: from } = this;
    const [type, signal] = [[...terminal, "permission.answered"], this.over.signal];
    try {
      for await (const e of this.session.follow({ from, invocation, until: "terminal", type, signal })) {
        if (e.type === "permission.answered") {
          this.answers.set(e.data.id, e.data.option);
          this.wake();
        } else if (e.invocation === invocation && terminal.includes(e.type) && !this.ending) this.lose(this.endedBy(e));
      }
    } catch {
      // An append meets the same error. Without one, a cancel is heard by the next append.
    }
  }

  /** Keeps how somebody else has ended the run, and returns the error of later calls. */
  private endedBy(e: { type: string; data?: unknown }): unknown {
    const { outcome, code, message } = (e.data ?? {}) as {
      outcome?: { type?: string };
      code?: string;
      message?: string;
    };
    if (e.type === "RUN_FINISHED" && outcome?.type === "cancelled") {
      this.status = "cancelled";
      return new DOMException(`run ${this.invocation} was cancelled`, "AbortError");
    }
    const interrupted = code === "lease_expired" || code === "interrupted_by_restart";
    this.status = interrupted ? "interrupted" : e.type === "RUN_ERROR" ? "failed" : "complete";
    const why = message ?? "as complete";
    return new TapedeckError("conflict", `run ${this.invocation} was ended by somebody else: ${why}`, { status: 409 });
  }

  /** The end of the run by somebody else, if an append was refused because of it. */
  private async otherEnd(error: unknown): Promise<unknown> {
    if (!(error instanceof TapedeckError) || error.kind !== "conflict") return undefined;
    try {
      const q = { from: this.offset, invocation: this.invocation, type: terminal };
      for await (const e of this.session.events(q)) if (terminal.includes(e.type)) return this.endedBy(e);
    } catch {
      // the refusal says enough
    }
    return undefined;
  }
}
