import type { EventProducer, NewEvent } from "@tapedeck/client";

const batchEvents = 2000;
const deltas = new Set(["TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT", "TOOL_CALL_ARGS"]);

type Delta = { messageId?: string; toolCallId?: string; delta: string };

/** Appends events in their order. Those that come during an append share the next one. */
export class Outbox {
  private readonly producer: Pick<EventProducer, "append">;
  private readonly queue: NewEvent[] = [];
  private sending: Promise<void> | undefined;
  private failure: { error: unknown } | undefined;

  constructor(producer: Pick<EventProducer, "append">) {
    this.producer = producer;
  }

  /** Takes events. It waits only while many are waiting, and fails if an append was refused. */
  async put(events: NewEvent[]): Promise<void> {
    if (this.failure) throw this.failure.error;
    for (const e of events) this.add(e);
    this.sending ??= this.send();
    if (this.queue.length > batchEvents) await this.flush();
  }

  /** Waits until everything is durable. */
  async flush(): Promise<void> {
    await this.sending;
    if (this.failure) throw this.failure.error;
  }

  private add(e: NewEvent): void {
    const last = this.queue.at(-1);
    const [a, b] = [last?.data as Delta | undefined, e.data as Delta];
    const joins = last?.type === e.type && deltas.has(String(e.type)) && last?.turn === e.turn;
    if (a && joins && (a.messageId ?? a.toolCallId) === (b.messageId ?? b.toolCallId)) a.delta += b.delta;
    else this.queue.push(e);
  }

  private async send(): Promise<void> {
    try {
      while (this.queue.length > 0) await this.producer.append(this.queue.splice(0, batchEvents));
    } catch (error) {
      this.failure = { error };
      this.queue.length = 0;
    }
    this.sending = undefined;
  }
}
