import type { Past } from "./lane";
import type { Message, Run, ToolCall } from "./types";

interface Settled<T> {
  at: number; // of the event by which it settled
  group: number; // of a message, or of the message that made a call; -1 for none
  item: T;
}

/** A list that only grows. Copies share what they have in common. */
class Growing<T> {
  private items: T[] = [];
  private length = 0;

  push(item: T): void {
    if (this.items.length !== this.length) this.items = this.items.slice(0, this.length); // a copy has gone on
    this.items.push(item);
    this.length++;
  }

  copy(): Growing<T> {
    const g = new Growing<T>();
    g.items = this.items;
    g.length = this.length;
    return g;
  }

  select<U>(has: (item: T) => boolean, value: (item: T) => U): U[] {
    const out: U[] = [];
    for (let i = 0; i < this.length; i++) {
      const item = this.items[i]!;
      if (has(item)) out.push(value(item));
    }
    return out;
  }
}

/** What has settled in a thread, in order. Nothing changes it any more. */
export class Archive {
  private messages = new Growing<Settled<Message>>();
  private calls = new Growing<Settled<ToolCall>>();
  private runs = new Growing<Settled<Run>>();

  addMessage(at: number, group: number, item: Message): void {
    this.messages.push({ at, group, item });
  }

  addCall(at: number, group: number, item: ToolCall): void {
    this.calls.push({ at, group, item });
  }

  addRun(at: number, item: Run): void {
    this.runs.push({ at, group: -1, item });
  }

  /** What no MESSAGES_SNAPSHOT has dropped. */
  items(past: Past[]): { messages: Message[]; calls: ToolCall[]; runs: Run[] } {
    const has = (s: { at: number; group: number }) => s.group < 0 || s.at >= past[s.group]!.floor;
    const value = <T>(s: Settled<T>) => s.item;
    return {
      messages: this.messages.select(has, value),
      calls: this.calls.select(has, value),
      runs: this.runs.select(has, value),
    };
  }

  copy(): Archive {
    const a = new Archive();
    a.messages = this.messages.copy();
    a.calls = this.calls.copy();
    a.runs = this.runs.copy();
    return a;
  }
}
