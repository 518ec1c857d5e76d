import { jumpOf, Timeline } from "../fold/timeline";
import type { Event } from "../fold/types";
import type { EventsPage, EventsQuery } from "./api";

/** What an event costs beside the text in it. */
const overhead = 200;
/** So many events are looked at for those of the channel. */
const farBack = 400_000;
/** From what is here to what is wanted; over more it is quicker to begin anew. */
const farthest = 3000;

export interface ChannelSource {
  /** An event that is at hand. */
  event: (offset: number) => Event | undefined;
  /** A page of events from the server, with those of the channel `session`. */
  fetch: (q: EventsQuery) => Promise<EventsPage>;
}

export interface ChannelBounds {
  most?: number; // bytes, about, that are kept of them
  lookBack?: number; // events in which they are looked for
}

/**
 * The newest events of one channel before an offset, with what takes events
 * back. Any number of others may lie between them, so it goes back from the
 * offset until it has enough: of a terminal only the end can be seen.
 */
export class ChannelLog {
  events: Event[] = []; // of the channel, by offset
  timeline = new Timeline([]);
  from = Number.POSITIVE_INFINITY; // all of them in [from, to) are here
  to = 0;
  private weight = 0;
  private wanted = 0;
  private busy: Promise<void> | undefined;
  private readonly channel: string;
  private readonly source: ChannelSource;
  private readonly most: number;
  private readonly lookBack: number;

  constructor(channel: string, source: ChannelSource, { most = 2_000_000, lookBack = farBack }: ChannelBounds = {}) {
    this.channel = channel;
    this.source = source;
    this.most = most;
    this.lookBack = lookBack;
  }

  /** Loads what is before an offset. Of several that are asked for meanwhile the last counts. */
  async reach(at: number): Promise<void> {
    this.wanted = at;
    this.busy ??= this.load().finally(() => {
      this.busy = undefined;
    });
    await this.busy;
  }

  /** Whether what is before an offset is here, or at hand. */
  ready(at: number): boolean {
    if (!this.busy && this.near(at)) this.walk(at);
    return at <= this.to && this.near(at);
  }

  private async load(): Promise<void> {
    for (let at = this.wanted; ; at = this.wanted) {
      if (!this.near(at)) await this.back(at);
      this.walk(at);
      if (this.to < at) await this.forward();
      else if (at === this.wanted) return;
    }
  }

  private near(at: number): boolean {
    return at >= this.from && at - this.to <= farthest && !this.isPoor(at);
  }

  /** Whether little is left before an offset while there was more. */
  private isPoor(at: number): boolean {
    return this.from > 0 && at < this.to && (this.events[this.events.length >> 2]?.offset ?? 0) >= at;
  }

  /** Goes on with what is at hand. */
  private walk(at: number): void {
    while (this.to < at) {
      const e = this.source.event(this.to);
      if (!e) break;
      this.add(e);
      this.to++;
    }
    this.trim();
  }

  private async forward(): Promise<void> {
    const { to } = this;
    const page = await this.source.fetch({ from: to, limit: 1000, channel: this.channel });
    if (page.next <= to) throw new Error("the server does not have these events");
    for (const e of page.events) this.add(e);
    this.to = page.next;
    this.trim();
  }

  private async back(at: number): Promise<void> {
    const found: Event[] = []; // the newest first
    let from = at;
    for (let weight = 0; from > 0 && at - from < this.lookBack && weight < this.most; ) {
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
    return overhead + (typeof e.data?.data === "string" ? e.data.data.length : 0);
  }

  /** Lets the oldest go when there is twice as much as wanted. */
  private trim(): void {
    if (this.weight < 2 * this.most) return;
    let n = 0;
    for (; this.weight > this.most && n < this.events.length - 1; n++) this.weight -= this.weigh(this.events[n]!);
    this.events = this.events.slice(n);
    this.from = this.events[0]?.offset ?? this.from;
  }
}
