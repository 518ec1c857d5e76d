import { Clock, isAdministrative, positionBy } from "../fold/clock.ts";
import type { Axis, Event, ReplayIndex } from "../fold/types.ts";

/** The number of events that a player shows in a second if they have no times of their own. */
export const eventsPerSecond = 5;

/** Positions of successive events, computed as the events are loaded. */
class Run {
  readonly from: number;
  readonly clock: Clock;
  private readonly list: number[] = [];

  constructor(from: number, clock: Clock) {
    this.from = from;
    this.clock = clock;
  }

  get end(): number {
    return this.from + this.list.length;
  }

  /** Continues with the loaded events. */
  extend(event: (offset: number) => Event | undefined): void {
    for (let e = event(this.end); e; e = event(this.end)) {
      this.clock.apply(e);
      this.list.push(this.clock.durationMs);
    }
  }

  at(offset: number): number | undefined {
    return this.list[offset - this.from];
  }
}

/**
 * The positions of the events of a session in its recording, in milliseconds. They are
 * exact from the first event on as far as events are loaded, and from the end of the
 * replay index on. Between these, the stretches of the index give them.
 */
export class Positions {
  private readonly event: (offset: number) => Event | undefined;
  private readonly first = new Run(0, new Clock());
  private tail: Run | undefined;
  private index: ReplayIndex | undefined;

  constructor(event: (offset: number) => Event | undefined) {
    this.event = event;
  }

  /** Whether the position of any event can be given. */
  known(head: number): boolean {
    return this.index !== undefined || this.upTo(head) !== undefined;
  }

  use(index: ReplayIndex): void {
    this.index = index;
    this.tail = new Run(index.at, Clock.from(index));
  }

  /** The position of the event at an offset; undefined if it is not known. */
  of(offset: number): number | undefined {
    if (offset < 0) return 0;
    const exact = this.exact(offset);
    if (exact !== undefined || !this.index) return exact;
    if (offset >= this.index.at) return this.tail?.clock.durationMs;
    for (let n = offset; n >= 0; n--) {
      const e = this.event(n);
      if (!e) break;
      if (!isAdministrative(e)) return positionBy(this.index.stretches, e);
    }
    return undefined;
  }

  /** The position of an event that need not be loaded. */
  ofEvent(e: Pick<Event, "offset" | "timestamp" | "channel">): number | undefined {
    return this.of(e.offset) ?? (this.index && positionBy(this.index.stretches, e));
  }

  private exact(offset: number): number | undefined {
    if (offset >= this.first.end) this.first.extend(this.event);
    if (offset < this.first.end) return this.first.at(offset);
    if (!this.tail || offset < this.tail.from) return undefined;
    if (offset >= this.tail.end) this.tail.extend(this.event);
    return this.tail.at(offset);
  }

  /** The clock after all events below the head, if all that are needed for it are loaded. */
  private upTo(head: number): Clock | undefined {
    this.exact(head - 1);
    if (this.first.end >= head) return this.first.clock;
    return this.tail && this.tail.end >= head ? this.tail.clock : undefined;
  }

  /** The length of the recording. */
  length(head: number): number {
    return this.upTo(head)?.durationMs ?? this.index?.duration_ms ?? 0;
  }

  axis(head: number): Axis {
    return this.upTo(head)?.axis ?? this.index?.axis ?? "events";
  }
}
