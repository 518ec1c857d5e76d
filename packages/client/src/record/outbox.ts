import type { NewEvent } from "../wire.ts";

const batchEvents = 2000;
const batchChars = 1 << 20;
const fullChars = 4 << 20;
const deltas = new Set(["TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT", "TOOL_CALL_ARGS"]);

type Delta = { messageId?: string; toolCallId?: string; delta: string };

/**
 * Appends events in their order. Those that come during an append share the next one, and the
 * deltas of a message that follow each other become one event.
 */
export class Outbox {
  /** Why nothing more is appended; undefined while it is. */
  failure: { error: unknown } | undefined;
  private readonly append: (events: NewEvent[]) => Promise<unknown>;
  private readonly failed: (error: unknown) => Promise<unknown>;
  private readonly queue: { event: NewEvent; size: number }[] = [];
  private size = 0;
  private sending: Promise<void> | undefined;

  /** `failed` hears that an append was refused, and returns the error that callers get. */
  constructor(append: (events: NewEvent[]) => Promise<unknown>, failed: (error: unknown) => Promise<unknown>) {
    [this.append, this.failed] = [append, failed];
  }

  /** Takes events, and answers at once unless 4 Mi characters wait. It fails if an append was refused. */
  async put(events: NewEvent[]): Promise<void> {
    if (this.failure) throw this.failure.error;
    for (const e of events) this.add(e);
    if (this.queue.length > 0) this.sending ??= this.send();
    if (this.size > fullChars) await this.flush();
  }

  /** Waits until everything is durable. */
  async flush(): Promise<void> {
    while (this.sending) await this.sending;
    if (this.failure) throw this.failure.error;
  }

  /** Drops what was not sent. Later calls fail with the error. */
  fail(error: unknown): void {
    this.failure ??= { error };
    this.queue.length = 0;
    this.size = 0;
  }

  private add(event: NewEvent): void {
    const last = this.queue.at(-1);
    const [a, b] = [last?.event.data as Delta | undefined, event.data as Delta];
    const joins = last?.event.type === event.type && deltas.has(String(event.type)) && last?.event.turn === event.turn;
    const mine = joins && a && (a.messageId ?? a.toolCallId) === (b.messageId ?? b.toolCallId);
    const size = mine ? b.delta.length : JSON.stringify(event).length;
    if (mine && last && last.size + size < batchChars) {
      a.delta += b.delta;
      last.size += size;
    } else this.queue.push({ event, size });
    this.size += size;
  }

  private async send(): Promise<void> {
    await null; // what is put in one go is one append
    try {
      while (this.queue.length > 0) await this.append(this.take());
    } catch (error) {
      this.fail(this.failure ? error : await this.failed(error));
    }
    this.sending = undefined;
  }

  private take(): NewEvent[] {
    let [count, size] = [0, 0];
    for (const item of this.queue) {
      if (count === batchEvents || (count > 0 && size + item.size > batchChars)) break;
      count++;
      size += item.size;
    }
    this.size -= size;
    return this.queue.splice(0, count).map(({ event }) => event);
  }
}
