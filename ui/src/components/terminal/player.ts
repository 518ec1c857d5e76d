import type { Envelope } from "@tapedeck/client";
import { type Size, sizeOf, type TerminalInfo, Terminals } from "@tapedeck/client/fold";
import type { ChannelLog } from "@tapedeck/client/player";
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
 * Shows a terminal as of the playhead. When the playhead moves forward, it writes the
 * new output. When it moves back, it fills a new screen from the start, which
 * replaces the old one when it is complete.
 */
export class TerminalPlayer {
  private readonly log: ChannelLog;
  private readonly listeners = new Set<() => void>();
  private terminals = new Terminals();
  private screen: Screen | undefined; // the visible screen
  private next: Screen | undefined; // the screen that will replace it
  private id: string | undefined; // id of the shown terminal
  private at = 0; // offset after the last event read
  private thread: string | undefined;
  private sizes = new Map<string, Size>(); // sizes from before the loaded events
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

  /** Whether output is still being written. */
  get busy(): boolean {
    return this.next !== undefined || this.screen?.idle === false;
  }

  close(): void {
    this.screen?.dispose();
    this.next?.dispose();
    this.screen = this.next = undefined;
    this.at = 0;
  }

  /** Sets the sizes from resize events before the loaded ones; newest event first. */
  setEarlierSizes(events: Envelope[]): void {
    const sizes = new Map<string, Size>();
    for (const e of events.toReversed()) {
      const size = sizeOf(e);
      if (size && typeof e.data?.terminal === "string") sizes.set(e.data.terminal, size);
    }
    if (sizes.size === 0 && this.sizes.size === 0) return;
    this.sizes = sizes;
    this.at = 0;
  }

  /** Shows a terminal, by default the last used one, as of an offset. The log must be loaded up to it. */
  show(w: Wanted): void {
    if (this.next && !this.next.idle && !this.canContinue(w)) {
      this.waiting = w; // finish this screen first: otherwise a dragged playhead would never show one
      return;
    }
    const from = this.canContinue(w) ? this.at : 0;
    if (from === 0) this.terminals = new Terminals();
    const events = this.activeEvents(from, w);
    for (const e of events) this.terminals.apply(e);
    this.at = w.at;
    this.thread = w.thread;
    const current = (w.terminal && this.terminals.get(w.terminal)) || this.terminals.newest();
    if (from > 0 && current?.id === this.id) this.feed(events);
    else this.restart(current?.id, from === 0 ? events : this.activeEvents(0, w));
    this.publish();
  }

  private canContinue({ at, thread }: Wanted): boolean {
    const { log } = this;
    return (
      this.at > 0 &&
      at >= this.at &&
      thread === this.thread &&
      log.from <= this.at &&
      log.timeline.continues(this.at, at)
    );
  }

  private activeEvents(from: number, { at, thread }: Wanted): Envelope[] {
    const { events, timeline } = this.log;
    return events.filter((e) => {
      if (e.offset < from || e.offset >= at) return false;
      const of = e.thread ?? "main";
      return (!thread || of === thread) && timeline.has(e.offset, of, at);
    });
  }

  private restart(id: string | undefined, events: Envelope[]): void {
    this.next?.dispose();
    this.id = id;
    const first = events.find((e) => e.type === "terminal.resize" && e.data?.terminal === id);
    const size = (id !== undefined && this.sizes.get(id)) || (first && sizeOf(first));
    const screen = new Screen(size, () => this.written(screen));
    this.next = screen;
    this.feed(events);
    if (screen.idle) this.written(screen);
  }

  private feed(events: Envelope[]): void {
    const screen = this.next ?? this.screen;
    for (const e of events) {
      if (e.data?.terminal !== this.id) continue;
      const size = e.type === "terminal.resize" ? sizeOf(e) : undefined;
      if (size) screen?.resize(size);
      if (e.type === "terminal.output" && typeof e.data?.data === "string") screen?.write(e.data.data);
    }
  }

  private written(screen: Screen): void {
    if (screen === this.next) {
      this.screen?.dispose();
      this.screen = screen;
      this.next = undefined;
    }
    const { waiting } = this;
    this.waiting = undefined;
    if (waiting) this.show(waiting);
    else this.publish();
  }

  private publish(): void {
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
