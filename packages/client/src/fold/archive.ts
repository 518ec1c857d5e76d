import type { Message, Run, ToolCall } from "./types.ts";

/** The settled messages of one group. */
export interface Past {
  count: number;
  floor: number; // messages that settled at an event before this offset are dropped
}

interface Settled<T> {
  at: number; // offset of the event at which it settled
  group: number; // group of the message, or of the message that contains the call; -1 for none
  item: T;
}

function has(s: Settled<unknown>, past: Past[]): boolean {
  return s.group < 0 || s.at >= past[s.group]!.floor;
}

/** An append-only list. Copies share their common items. */
class Growing<T> {
  private items: T[] = [];
  private length = 0;

  push(item: T): void {
    if (this.items.length !== this.length) this.items = this.items.slice(0, this.length); // a copy has appended to the shared array
    this.items.push(item);
    this.length++;
  }

  copy(): Growing<T> {
    const g = new Growing<T>();
    g.items = this.items;
    g.length = this.length;
    return g;
  }

  /** Drops and returns the oldest items once the list is longer than twice `kept`. */
  trim(kept: number): T[] {
    if (this.length <= 2 * kept) return [];
    const dropped = this.items.slice(0, this.length - kept);
    this.items = this.items.slice(this.length - kept, this.length);
    this.length = kept;
    return dropped;
  }

  get size(): number {
    return this.length;
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

/** The settled items of a thread, in order. They never change again. */
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

  /**
   * The items that no MESSAGES_SNAPSHOT has dropped, by offset. They need sorting:
   * an item that was open for long settles after younger ones.
   */
  items(past: Past[]): { messages: Message[]; calls: ToolCall[]; runs: Run[] } {
    const there = (s: Settled<unknown>) => has(s, past);
    const value = <T>(s: Settled<T>) => s.item;
    return {
      messages: byOffset(this.messages.select(there, value)),
      calls: byOffset(this.calls.select(there, value)),
      runs: byOffset(this.runs.select(there, value)),
    };
  }

  /** Whether `trim` would drop anything. */
  exceeds(kept: number): boolean {
    return Math.max(this.messages.size, this.calls.size, this.runs.size) > 2 * kept;
  }

  /** Drops the oldest items; returns the number of messages dropped. */
  trim(kept: number, past: Past[]): number {
    this.calls.trim(kept);
    this.runs.trim(kept);
    return this.messages.trim(kept).filter((s) => has(s, past)).length;
  }

  copy(): Archive {
    const a = new Archive();
    a.messages = this.messages.copy();
    a.calls = this.calls.copy();
    a.runs = this.runs.copy();
    return a;
  }
}

function byOffset<T extends { offset: number }>(items: T[]): T[] {
  for (let i = 1; i < items.length; i++) {
    if (items[i]!.offset < items[i - 1]!.offset) return items.sort((a, b) => a.offset - b.offset);
  }
  return items;
}
