import { isObject } from "./read.ts";
import type { Axis, Event, Gap, ReplayIndex, Stretch } from "./types.ts";

/** What passes between two successive events of a conversation. */
export interface Silence {
  ms: number; // below 0 if the clock of the writer was set back
  skipped: boolean; // it takes no time in the recording
}

const minTimedMs = 1000;
const minGapMs = 2000;
const maxSilenceMs = 24 * 3600 * 1000;
const maxOpenRuns = 1000;

const none: Silence = { ms: 0, skipped: false };

/** Whether an event takes no time in a recording: it is about the session itself, or about people. */
export const isAdministrative = (e: Pick<Event, "channel">): boolean =>
  e.channel === "session" || e.channel === "presence";

/**
 * Folds the events of a session into its recording time, as the Go package `view` does:
 * see "Recording time" in docs/views.md. After `apply`, `durationMs` is the position of
 * the event.
 */
export class Clock {
  firstMs: number | undefined; // time of the first event of the conversation, since 1970
  lastMs = 0; // time of its newest event
  lastOffset = 0;
  durationMs = 0;
  openRuns: readonly string[] = [];
  hasEnded = false;

  /** The clock with which an index ends. */
  static from(x: ReplayIndex): Clock {
    const c = new Clock();
    if (x.first_at === undefined || x.last_at === undefined) return c;
    c.firstMs = Date.parse(x.first_at);
    c.lastMs = Date.parse(x.last_at);
    c.lastOffset = x.last_offset;
    c.durationMs = x.duration_ms;
    c.openRuns = x.open_runs ?? [];
    c.hasEnded = x.has_ended ?? false;
    return c;
  }

  get axis(): Axis {
    return this.durationMs < minTimedMs ? "events" : "time";
  }

  /** Applies the next event; returns the silence before it. */
  apply(e: Event): Silence {
    if (isAdministrative(e)) {
      if (e.type === "session.forked" && this.openRuns.length > 0) {
        this.hasEnded = true;
        this.openRuns = [];
      }
      return none;
    }
    const at = Date.parse(e.timestamp);
    let silence = none;
    if (this.firstMs === undefined) {
      this.firstMs = this.lastMs = at;
    } else {
      const ms = at - this.lastMs;
      silence = { ms, skipped: this.skips(e, ms) };
      if (silence.skipped || ms > 0) this.lastMs = at;
      if (!silence.skipped && ms > 0) this.durationMs += ms;
    }
    this.lastOffset = e.offset;
    this.trackRun(e);
    return silence;
  }

  private skips(e: Event, ms: number): boolean {
    if (ms < -minGapMs || ms > maxSilenceMs) return true;
    if (ms <= minGapMs) return false;
    if (this.openRuns.length === 0) return this.hasEnded || beginsTurn(e);
    return endsDead(e);
  }

  private trackRun(e: Event): void {
    const id = e.invocation;
    if (!id) return;
    if (e.type === "RUN_STARTED") {
      if (this.openRuns.length < maxOpenRuns && !this.openRuns.includes(id)) this.openRuns = [...this.openRuns, id];
    } else if (e.type === "RUN_FINISHED" || e.type === "RUN_ERROR") {
      this.hasEnded = true;
      this.openRuns = this.openRuns.filter((open) => open !== id);
    }
  }
}

/** Whether an agent's work begins with an event. */
function beginsTurn(e: Event): boolean {
  if (e.thread?.startsWith("sub_")) return false;
  if (e.type === "RUN_STARTED") return true;
  if (e.type !== "message.added" && e.type !== "TEXT_MESSAGE_START") return false;
  const { role, message } = e.data ?? {};
  return role === "user" || (isObject(message) && message.role === "user");
}

/** Whether an event was written in place of a process that had died or fallen silent. */
function endsDead(e: Event): boolean {
  const { code, metadata } = e.data ?? {};
  if (e.type === "RUN_ERROR") return code === "interrupted_by_restart" || code === "lease_expired";
  const ours = isObject(metadata) ? metadata.tapedeck : undefined;
  return isObject(ours) && ours.closed === "interrupted";
}

/**
 * The position of an event by the stretches of an index: exact within them, unless the
 * index was thinned. It needs no other event.
 */
export function positionBy(stretches: readonly Stretch[], e: Pick<Event, "offset" | "timestamp" | "channel">): number {
  let low = 0;
  for (let high = stretches.length; low < high; ) {
    const mid = (low + high) >> 1;
    if (stretches[mid]!.offset <= e.offset) low = mid + 1;
    else high = mid;
  }
  const s = stretches[low - 1];
  if (!s) return 0;
  const since = isAdministrative(e) ? 0 : Date.parse(e.timestamp) - Date.parse(s.at);
  const position = s.position_ms + Math.max(0, since);
  return Math.min(position, stretches[low]?.position_ms ?? position);
}

/** The gaps that take time in the recording. */
export const playedGaps = (gaps: readonly Gap[]): Gap[] => gaps.filter((g) => !g.skipped);
