import { hasOpenRun, type SessionEntry } from "@tapedeck/client";

/** A range of time, in milliseconds since 1970. */
export interface Range {
  from: number;
  to: number;
}

export interface Bar {
  session: SessionEntry;
  from: number;
  to: number;
  row: number; // in its lane
}

/** The sessions of one agent. Simultaneous ones are in different rows. */
export interface AgentLane {
  agent: string;
  bars: Bar[];
  rows: number;
  top: number;
}

export const rowHeight = 20;
export const lanePadding = 6;
export const axisHeight = 26;
/** The minimum width of a bar, so that it can be seen and clicked. */
export const minBarWidth = 8;
/** With more simultaneous sessions, the others overlap in the last row. */
const maxRows = 24;

/**
 * From the first to the newest event of its conversation; a running session lasts until
 * now. What happens to the session itself, such as an import, does not count.
 */
export function spanOf({ summary, status, created_at }: SessionEntry, now: number): Range {
  const from = Date.parse(summary?.started_at ?? created_at);
  const to = hasOpenRun(status) ? now : Date.parse(summary?.updated_at ?? created_at);
  return { from, to: Math.max(from, to) };
}

/** Places sessions as bars in lanes. The rows change with the zoom, but not when the range moves. */
export function agentLanes(sessions: SessionEntry[], now: number, msPerPixel: number): AgentLane[] {
  const byAgent = new Map<string, Bar[]>();
  for (const session of sessions) {
    const { from, to } = spanOf(session, now);
    const agent = session.agent ?? "";
    const bars = byAgent.get(agent);
    const bar = { session, from, to, row: 0 };
    if (bars) bars.push(bar);
    else byAgent.set(agent, [bar]);
  }
  let top = axisHeight;
  const agents = [...byAgent].sort(([a], [b]) => a.localeCompare(b));
  return agents.map(([agent, bars]) => {
    bars.sort((a, b) => a.from - b.from);
    const rows = pack(bars, minBarWidth * msPerPixel, 2 * msPerPixel);
    const lane = { agent, bars, rows, top };
    top += rows * rowHeight + 2 * lanePadding;
    return lane;
  });
}

/** Gives each bar the first row with space for it; returns the number of rows. */
function pack(bars: Bar[], minLength: number, space: number): number {
  const ends: number[] = [];
  for (const b of bars) {
    let row = ends.findIndex((end) => end <= b.from);
    if (row < 0) row = Math.min(ends.length, maxRows - 1);
    b.row = row;
    ends[row] = Math.max(b.to, b.from + minLength) + space;
  }
  return Math.max(1, ends.length);
}

export function heightOf(lanes: AgentLane[]): number {
  const last = lanes.at(-1);
  return last ? last.top + last.rows * rowHeight + 2 * lanePadding : axisHeight;
}

export const topOf = (lane: AgentLane, bar: Bar) => lane.top + lanePadding + bar.row * rowHeight;

/** The bar at a position; the newest if several overlap. */
export function barAt(lanes: AgentLane[], time: number, y: number, msPerPixel: number): Bar | undefined {
  const lane = lanes.find((l) => l.top <= y && y < l.top + l.rows * rowHeight + 2 * lanePadding);
  if (!lane) return undefined;
  const row = Math.floor((y - lane.top - lanePadding) / rowHeight);
  return lane.bars.findLast(
    (b) => b.row === row && b.from <= time && time <= Math.max(b.to, b.from + minBarWidth * msPerPixel),
  );
}

/** The bars of a lane in a range. */
export function inRange(lane: AgentLane, range: Range, msPerPixel: number): Bar[] {
  const minLength = minBarWidth * msPerPixel;
  return lane.bars.filter((b) => b.from < range.to && Math.max(b.to, b.from + minLength) > range.from);
}

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const dayMs = 24 * hour;
const steps = [1, 5, 15, 30].flatMap((n) => [n * second, n * minute]);
const longer = [
  hour,
  3 * hour,
  6 * hour,
  12 * hour,
  dayMs,
  2 * dayMs,
  7 * dayMs,
  14 * dayMs,
  30 * dayMs,
  90 * dayMs,
  365 * dayMs,
];
const allSteps = [...steps, ...longer].sort((a, b) => a - b);

/** Round local times, at least `minStep` milliseconds apart. */
export function ticksOf({ from, to }: Range, minStep: number): { at: number; label: string }[] {
  const step = allSteps.find((s) => s >= minStep) ?? (allSteps.at(-1) as number);
  const zone = new Date(from).getTimezoneOffset() * minute;
  const out: { at: number; label: string }[] = [];
  for (let at = Math.ceil((from - zone) / step) * step + zone; at < to; at += step)
    out.push({ at, label: labelOf(at, step) });
  return out;
}

function labelOf(at: number, step: number): string {
  const d = new Date(at);
  const date = d.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  if (step >= dayMs) return date;
  const time = d.toLocaleTimeString("en-GB", {
    hour: "2-digit",
    minute: "2-digit",
    ...(step < minute ? { second: "2-digit" } : {}),
  });
  return time === "00:00" ? date : time;
}

const minRange = 2 * second;
const maxRange = 20 * 365 * dayMs;

/** Scales a range around a position in it, from 0 to 1. */
export function zoomed({ from, to }: Range, factor: number, about = 0.5): Range {
  const length = Math.max(minRange, Math.min(maxRange, (to - from) * factor));
  const middle = from + (to - from) * about;
  return { from: Math.round(middle - length * about), to: Math.round(middle + length * (1 - about)) };
}

export function moved({ from, to }: Range, part: number): Range {
  const by = Math.round((to - from) * part);
  return { from: from + by, to: to + by };
}

/** The range of all these sessions, up to now. */
export function fitRange(sessions: SessionEntry[], now: number): Range {
  const first = sessions.reduce((n, s) => Math.min(n, spanOf(s, now).from), now);
  const length = Math.max(minute, now - first);
  return { from: Math.round(first - length * 0.03), to: Math.round(first + length * 1.05) };
}
