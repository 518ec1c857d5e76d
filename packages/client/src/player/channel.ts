import type { EventsPage, EventsQuery } from "../api.ts";
import { jumpOf, Timeline } from "../fold/timeline.ts";
import type { Event } from "../fold/types.ts";

/** Memory of an event, in bytes, in addition to its text. */
const eventOverhead = 200;
/** How many events are searched for events of the channel. */
const defaultLookBack = 400_000;
/** The largest gap that is loaded forwards. Over a larger gap, a new start is quicker. */
const maxForwardGap = 3000;

export interface ChannelSource {
  /** An event, if it is in memory. */
  event: (offset: number) => Event | undefined;
  /** A page of events from the server. It includes the events of the channel `session`. */
  fetch: (q: EventsQuery) => Promise<EventsPage>;
}

export interface ChannelBounds {
  maxBytes?: number; // approximate memory for the events
  lookBack?: number; // how many events are searched for those of the channel
}

/**
 * The newest events of one channel before an offset, with the jumps that revert
 * events. Any number of other events may lie between them. So it reads back from
 * the offset until it has enough: only the end of a terminal is visible.
 */
export class ChannelLog {
  events: Event[] = []; // the events of the channel, by offset
  timeline = new Timeline([]);
  from = Number.POSITIVE_INFINITY; // all events of the channel in [from, to) are loaded
  to = 0;
  private weight = 0;
  private wanted = 0;
  private busy: Promise<void> | undefined;
  private readonly channel: string;
  private readonly source: ChannelSource;
  private readonly maxBytes: number;
  private readonly lookBack: number;

  constructor(
    channel: string,
    source: ChannelSource,
    { maxBytes = 2_000_000, lookBack = defaultLookBack }: ChannelBounds = {},
  ) {
    this.channel = channel;
    this.source = source;
    this.maxBytes = maxBytes;
    this.lookBack = lookBack;
  }

  /** Loads the events before an offset. If called again while loading, the last offset counts. */
  async load(at: number): Promise<void> {
    this.wanted = at;
    this.busy ??= this.loadWanted().finally(() => {
      this.busy = undefined;
    });
    await this.busy;
  }

  /** Whether the events before an offset are loaded. First takes those that the source has in memory. */
  ready(at: number): boolean {
    if (!this.busy && this.isNear(at)) this.takeLoaded(at);
    return at <= this.to && this.isNear(at);
  }

  private async loadWanted(): Promise<void> {
    for (let at = this.wanted; ; at = this.wanted) {
      if (!this.isNear(at)) await this.loadBackwards(at);
      this.takeLoaded(at);
      if (this.to < at) await this.loadForwards();
      else if (at === this.wanted) return;
    }
  }

  private isNear(at: number): boolean {
    return at >= this.from && at - this.to <= maxForwardGap && !this.isSparse(at);
  }

  /** Whether few of the loaded events are before an offset, and the log has more. */
  private isSparse(at: number): boolean {
    return this.from > 0 && at < this.to && (this.events[this.events.length >> 2]?.offset ?? 0) >= at;
  }

  /** Continues with the events that the source has in memory. */
  private takeLoaded(at: number): void {
    while (this.to < at) {
      const e = this.source.event(this.to);
      if (!e) break;
      this.add(e);
      this.to++;
    }
    this.trim();
  }

  private async loadForwards(): Promise<void> {
    const { to } = this;
    const page = await this.source.fetch({ from: to, limit: 1000, channel: this.channel });
    if (page.next <= to) throw new Error("the server does not have these events");
    for (const e of page.events) this.add(e);
    this.to = page.next;
    this.trim();
  }

  private async loadBackwards(at: number): Promise<void> {
    const found: Event[] = []; // newest first
    let from = at;
    for (let weight = 0; from > 0 && at - from < this.lookBack && weight < this.maxBytes; ) {
      const e = this.source.event(from - 1);
      const page = e
        ? { events: [e], next: from - 1 }
        : await this.source.fetch({ from, reverse: true, limit: 1000, channel: this.channel });
      if (page.next >= from) throw new Error("the server does not have these events");
      for (const one of page.events) {
        found.push(one);
        weight += this.weigh(one);
      }
      from = page.next;
    }
    this.events = [];
    this.timeline = new Timeline([]);
    this.weight = 0;
    for (const e of found.reverse()) this.add(e);
    this.from = from;
    this.to = at;
  }

  private add(e: Event): void {
    const jump = jumpOf(e);
    if (jump) this.timeline = this.timeline.with([jump]);
    if (e.channel !== this.channel) return;
    this.events.push(e);
    this.weight += this.weigh(e);
  }

  private weigh(e: Event): number {
    if (e.channel !== this.channel) return 0;
    return eventOverhead + (typeof e.data?.data === "string" ? e.data.data.length : 0);
  }

  /** Drops the oldest events once they use twice maxBytes. */
  private trim(): void {
    if (this.weight < 2 * this.maxBytes) return;
    let n = 0;
    for (; this.weight > this.maxBytes && n < this.events.length - 1; n++) this.weight -= this.weigh(this.events[n]!);
    this.events = this.events.slice(n);
    this.from = this.events[0]?.offset ?? this.from;
  }
}
