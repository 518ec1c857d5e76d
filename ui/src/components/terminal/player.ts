import type { ChannelLog } from "@/data/channel";
import { type Size, sizeOf, type TerminalInfo, Terminals } from "@/fold/terminals";
import type { Event } from "@/fold/types";
import { Screen } from "./screen";

export interface Shown {
  terminals: TerminalInfo[];
  current?: TerminalInfo;
  screen?: Screen;
  version: number;
}

interface Wanted {
  at: number;
  terminal: string | undefined;
  thread: string | undefined;
}

/**
 * Shows a terminal as it was at the playhead. Forward it writes what is new;
 * back it begins anew, with another screen that takes the place of the old one
 * when all is written.
 */
export class TerminalPlayer {
  private readonly log: ChannelLog;
  private readonly listeners = new Set<() => void>();
  private terminals = new Terminals();
  private screen: Screen | undefined; // the one that is seen
  private coming: Screen | undefined; // the one that is to take its place
  private id: string | undefined; // of the terminal that is being written
  private at = 0; // up to where it has read
  private thread: string | undefined;
  private sizes = new Map<string, Size>(); // from before what is here
  private waiting: Wanted | undefined;
  private state: Shown = { terminals: [], version: 0 };

  constructor(log: ChannelLog) {
    this.log = log;
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  get = (): Shown => this.state;

  /** Whether what was asked for is still being written. */
  get busy(): boolean {
    return this.coming !== undefined || this.screen?.idle === false;
  }

  close(): void {
    this.screen?.dispose();
    this.coming?.dispose();
    this.screen = this.coming = undefined;
    this.at = 0;
  }

  /** Sizes that were told before the first event that is here, the newest first. */
  know(events: Event[]): void {
    const sizes = new Map<string, Size>();
    for (const e of events.toReversed()) {
      const size = sizeOf(e);
      if (size && typeof e.data?.terminal === "string") sizes.set(e.data.terminal, size);
    }
    if (sizes.size === 0 && this.sizes.size === 0) return;
    this.sizes = sizes;
    this.at = 0;
  }

  /** Shows a terminal, or the one that was used last, as of an offset up to which the log reaches. */
  show(w: Wanted): void {
    if (this.coming && !this.coming.idle && !this.goesOn(w)) {
      this.waiting = w; // one at a time, or a playhead that is dragged shows nothing
      return;
    }
    const from = this.goesOn(w) ? this.at : 0;
    if (from === 0) this.terminals = new Terminals();
    const events = this.inForce(from, w);
    for (const e of events) this.terminals.apply(e);
    this.at = w.at;
    this.thread = w.thread;
    const current = (w.terminal && this.terminals.get(w.terminal)) || this.terminals.newest();
    if (from > 0 && current?.id === this.id) this.feed(events);
    else this.anew(current?.id, from === 0 ? events : this.inForce(0, w));
    this.tell();
  }

  private goesOn({ at, thread }: Wanted): boolean {
    const { log } = this;
    return (
      this.at > 0 &&
      at >= this.at &&
      thread === this.thread &&
      log.from <= this.at &&
      log.timeline.continues(this.at, at)
    );
  }

  private inForce(from: number, { at, thread }: Wanted): Event[] {
    const { events, timeline } = this.log;
    return events.filter((e) => {
      if (e.offset < from || e.offset >= at) return false;
      const of = e.thread ?? "main";
      return (!thread || of === thread) && timeline.has(e.offset, of, at);
    });
  }

  private anew(id: string | undefined, events: Event[]): void {
    this.coming?.dispose();
    this.id = id;
    const first = events.find((e) => e.type === "terminal.resize" && e.data?.terminal === id);
    const size = (id !== undefined && this.sizes.get(id)) || (first && sizeOf(first));
    const screen = new Screen(size, () => this.drawn(screen));
    this.coming = screen;
    this.feed(events);
    if (screen.idle) this.drawn(screen);
  }

  private feed(events: Event[]): void {
    const screen = this.coming ?? this.screen;
    for (const e of events) {
      if (e.data?.terminal !== this.id) continue;
      const size = e.type === "terminal.resize" ? sizeOf(e) : undefined;
      if (size) screen?.resize(size);
      if (e.type === "terminal.output" && typeof e.data?.data === "string") screen?.write(e.data.data);
    }
  }

  private drawn(screen: Screen): void {
    if (screen === this.coming) {
      this.screen?.dispose();
      this.screen = screen;
      this.coming = undefined;
    }
    const { waiting } = this;
    this.waiting = undefined;
    if (waiting) this.show(waiting);
    else this.tell();
  }

  private tell(): void {
    const id = this.id;
    this.state = {
      terminals: this.terminals.list(),
      current: id === undefined ? undefined : this.terminals.get(id),
      screen: this.screen,
      version: this.state.version + 1,
    };
    for (const listener of this.listeners) listener();
  }
}
