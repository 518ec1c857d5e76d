import { type Connection, surroundings, TapedeckError } from "@tapedeck/client";
import type { UIMessage } from "ai";
import type { Unsent } from "./active.ts";
import { placeOf } from "./seen.ts";
import type { TapedeckTransport } from "./transport.ts";

/** What a sync needs of a chat: what `useChat` returns has it. */
export interface SyncedChat<M extends UIMessage = UIMessage> {
  id: string;
  messages: M[];
  status: string;
  setMessages: (messages: M[]) => void;
  resumeStream: () => Promise<void>;
}

type Event = { offset: number; type: string; invocation?: string | undefined; data?: unknown };

/** What can change a chat. Events of the session, such as rewinds, pass every filter. */
const types = ["RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "message.added", "permission.answered"];
const jumps = ["session.rewound", "session.cleared", "session.overwritten", "session.redacted"];

/** A connection, or none while there is nothing to follow. */
export type SyncConnection = Connection | { state: "idle"; error?: undefined; inMs?: undefined };

export interface SyncOptions<M extends UIMessage> {
  onConnection?: (c: SyncConnection) => void;
  onError?: (e: TapedeckError) => void;
  onUnsent?: (u: Unsent<M>) => void;
}

// Nothing tells a page that a chat begins elsewhere. So it asks, less and less often.
const [firstLookMs, longestLookMs] = [5_000, 60_000];

/**
 * Keeps a chat as the log is: what a second tab, another device or another program did appears,
 * and a run that was started there is streamed. It does nothing while the chat streams by itself.
 */
export class Sync<M extends UIMessage> {
  private readonly transport: () => TapedeckTransport<M>;
  private readonly chat: () => SyncedChat<M>;
  private readonly o: SyncOptions<M>;
  private readonly end = new AbortController();
  private pending: Event[] = [];
  private open: string | undefined; // the run that is open
  private next = 0;
  private working = false;
  // The messages that the chat had, and those that replaced them. A page has the old ones until it
  // is drawn again.
  private put: M[][] = [];

  constructor(transport: () => TapedeckTransport<M>, chat: () => SyncedChat<M>, o: SyncOptions<M> = {}) {
    [this.transport, this.chat, this.o] = [transport, chat, o];
  }

  /** Follows the session until it is stopped. */
  start(): void {
    this.next = Math.max(0, ...this.chat().messages.map((m) => after(m)));
    const { id } = this.chat();
    this.end.signal.addEventListener(
      "abort",
      this.transport()
        .active(id)
        .onIdle(() => this.check()),
    );
    void this.follow(id).catch((error) => this.fail(error));
  }

  stop(): void {
    this.end.abort();
  }

  private async follow(id: string): Promise<void> {
    const { signal } = this.end;
    const onStatus = (c: Connection) => signal.aborted || this.o.onConnection?.(c);
    while (!signal.aborted) {
      if (this.next === 0) await this.untilBegun(id);
      const session = this.transport().session(id);
      try {
        for await (const e of session.follow({ from: this.next, thread: "main", type: types, signal, onStatus })) {
          this.next = e.offset + 1;
          this.take(e as Event);
        }
        return; // the session is closed
      } catch (error) {
        // A chat has no session before its first message. One that was there is deleted.
        if (!(error instanceof TapedeckError) || error.kind !== "not_found" || this.next > 0) throw error;
        await this.pause(firstLookMs);
      }
    }
  }

  /** Waits until the chat has its first message, from this page or from another one. */
  private async untilBegun(id: string): Promise<void> {
    const { signal } = this.end;
    for (let waitMs = firstLookMs; !signal.aborted; waitMs = Math.min(2 * waitMs, longestLookMs)) {
      const seen = globalThis.document?.visibilityState !== "hidden";
      try {
        if (seen && (await this.transport().begun(id, { signal }))) return;
        this.o.onConnection?.({ state: "idle" });
      } catch (error) {
        if (signal.aborted || !(error instanceof TapedeckError) || !error.retryable) throw error;
        this.o.onConnection?.({ state: "reconnecting", error, inMs: waitMs });
      }
      await this.pause(waitMs);
    }
  }

  /** Waits: at most until this page has sent something, or is looked at again. */
  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const over = () => {
        clearTimeout(timer);
        forget();
        sleep();
        this.end.signal.removeEventListener("abort", over);
        resolve();
      };
      const timer = setTimeout(over, ms);
      const forget = this.transport().active(this.chat().id).onIdle(over);
      const sleep = surroundings.onWake(over);
      this.end.signal.addEventListener("abort", over);
    });
  }

  private take(e: Event): void {
    if (e.type === "RUN_STARTED") this.open = e.invocation;
    if ((e.type === "RUN_FINISHED" || e.type === "RUN_ERROR") && e.invocation === this.open) this.open = undefined;
    if ([...types, ...jumps].includes(e.type)) this.pending.push(e);
    this.check();
  }

  /** Whether the chat is busy by itself. */
  private busy(): boolean {
    const { id, status } = this.chat();
    return this.transport().active(id).streams > 0 || status === "submitted" || status === "streaming";
  }

  /** Brings the chat up to date, unless it is. Call it when the chat may have changed. */
  check(): void {
    if (this.end.signal.aborted) return;
    this.dropRefused();
    if (this.working || this.busy()) return;
    this.pending = this.pending.filter((e) => !this.known(e));
    if (this.pending.length === 0 && this.unsent().size === 0) return;
    this.working = true;
    void this.bring()
      .catch((error) => this.fail(error))
      .finally(() => {
        this.working = false;
        this.check();
      });
  }

  /** The messages of the chat, also before the page has drawn what was put into it. */
  private messages(): M[] {
    const { messages } = this.chat();
    const [before, put = messages] = this.put;
    return before === messages ? put : messages;
  }

  private show(messages: M[]): void {
    const chat = this.chat();
    this.put = [chat.messages, messages];
    chat.setMessages(messages);
  }

  private unsent(): Map<string, Unsent> {
    return this.transport().active(this.chat().id).unsent;
  }

  /** Removes the messages that the server has refused, also while the chat streams what made it refuse them. */
  private dropRefused(): void {
    for (const [id, u] of this.unsent()) {
      const { status } = u.error;
      if (status >= 400 && status < 500 && status !== 408) this.drop(id, u);
    }
  }

  private drop(id: string, u: Unsent): void {
    this.unsent().delete(id);
    // While it was there, a message that streams was appended behind it, once more.
    const last = new Map(this.messages().map((m) => [m.id, m]));
    if (last.delete(id)) this.show([...last.values()]);
    this.o.onUnsent?.(u as Unsent<M>);
  }

  /** Loads the chat. If the server is away just now, nothing more may happen that would make it try again. */
  private async bring(): Promise<void> {
    for (let waitMs = 1000; !this.end.signal.aborted; waitMs = Math.min(2 * waitMs, 15_000)) {
      const news = this.pending;
      try {
        return await this.load();
      } catch (error) {
        if (this.end.signal.aborted) return;
        if (!(error instanceof TapedeckError) || !error.retryable) {
          this.unsent().clear(); // nobody can say whether the chat has them
          throw error;
        }
        this.pending = [...news, ...this.pending];
        await this.pause(Math.max(waitMs, error.retryAfterMs ?? 0));
      }
    }
  }

  private async load(): Promise<void> {
    const { id } = this.chat();
    const news = this.pending;
    this.pending = [];
    const { signal } = this.end;
    const messages = await this.transport().messages(id, { signal });
    if (signal.aborted) return;
    if (this.busy()) {
      this.pending = [...news, ...this.pending]; // the user has sent something meanwhile
      return;
    }
    this.show(messages);
    for (const [id, u] of this.unsent()) {
      if (messages.some((m) => m.id === id))
        this.unsent().delete(id); // only the answer was lost
      else this.drop(id, u);
    }
    // If no run is open there is no stream, and this only clears the error of an earlier one.
    if (this.open || this.chat().status === "error") await this.chat().resumeStream();
  }

  /** Whether the chat already shows what an event says. */
  private known(e: Event): boolean {
    const { id } = this.chat();
    const messages = this.messages();
    const answer = messages.find((m) => runsOf(m).includes(e.invocation));
    const data = (e.data ?? {}) as { id?: unknown; message?: { id?: string; role?: string } };
    const { id: said, role } = data.message ?? {};
    if (role === "user") return messages.some((m) => m.id === said || m.parts.some((p) => "id" in p && p.id === said));
    if (!answer) return e.type === "message.added" && role !== "assistant";
    switch (e.type) {
      case "RUN_STARTED":
      case "message.added":
        return true;
      case "RUN_FINISHED":
      case "RUN_ERROR":
        // It shows an earlier attempt, too, or a question: the stream that this page has seen ended there.
        if (answer.parts.some((p) => p.type === "data-attempt" || asks(p))) return false;
        return after(answer) > e.offset || this.transport().active(id).ended.has(String(e.invocation));
      case "permission.answered":
        return !answer.parts.some((p) => asks(p, String(data.id)));
    }
    return false;
  }

  private fail(error: unknown): void {
    if (this.end.signal.aborted) return;
    this.o.onError?.(
      error instanceof TapedeckError
        ? error
        : new TapedeckError("internal", "the chat could not be brought up to date", { cause: error }),
    );
  }
}

/** The runs of a message of an agent. */
function runsOf(m: UIMessage): unknown[] {
  const { runs } = placeOf(m.metadata);
  return Array.isArray(runs) ? runs : [m.id];
}

/** The offset after what a message is known to have. */
function after(m: UIMessage): number {
  const { offset, next } = placeOf(m.metadata);
  return next ?? (offset === undefined ? 0 : offset + 1);
}

/** Whether a part waits for the answer to a question, or to any. */
function asks(part: object, question?: string): boolean {
  const { state, approval } = part as { state?: string; approval?: { id?: string } };
  return state === "approval-requested" && (question === undefined || approval?.id === question);
}
