import type { Marker, ReplayIndex } from "@tapedeck/client";
import { prepareCanvas } from "../canvas";
import { duration } from "../format";
import { type Axis, positionOf } from "./axis";

/** The colour and the name of each kind of marker. */
export const markerKinds: Record<string, [colour: string, word: string]> = {
  user: ["--text", "user"],
  tool: ["--strong", "tool"],
  error: ["--fault", "error"],
  cancel: ["--warn", "cancelled"],
  permission: ["--warn", "permission"],
  plan: ["--ok", "plan"],
  rewind: ["--accent", "rewind"],
  overwrite: ["--accent", "overwrite"],
  clear: ["--accent", "clear"],
  attempt: ["--muted", "attempt"],
  fork: ["--run", "fork"],
  bookmark: ["--run", "bookmark"],
};

/** The kinds that are drawn above the bar. */
const tall = new Set(["user", "error", "cancel", "permission", "rewind", "overwrite", "clear", "fork", "bookmark"]);

const markerHeight = 10;

interface Paint {
  index: ReplayIndex;
  axis: Axis;
  position: number;
  /** The position of each event, if all are loaded; otherwise the density of the index is drawn. */
  positions?: Float64Array;
}

export function paintBar(canvas: HTMLCanvasElement, { index, axis, position, positions }: Paint): void {
  const g = prepareCanvas(canvas);
  if (!g) return;
  const { ctx, width, height, colour } = g;
  const x = (at: number) => axis.place(at) * width;
  const played = x(position);
  ctx.fillStyle = colour("--raised");
  ctx.fillRect(0, markerHeight, width, height - markerHeight);
  paintGaps(ctx, axis, x, { height, width }, colour);
  const box = { height, played, width };
  if (positions) paintPositions(ctx, positions, x, box, colour);
  else if (axis.kind === "time") paintDensity(ctx, index, x, box, colour);
  else paintEvenly(ctx, box, colour);
  paintSkips(ctx, axis, x, box, colour);
  paintMarkers(ctx, index.markers ?? [], (m) => x(positionOf(m, axis.kind)), { width, height }, colour);
  if (played < -1 || played > width + 1) return; // the playhead is outside of the visible part
  ctx.fillStyle = colour("--playhead");
  const at = Math.max(1.5, Math.min(width - 1.5, played));
  ctx.fillRect(at - 1.5, 0, 3, height);
  ctx.beginPath(); // a knob, so that its form tells it from the bars, too
  ctx.moveTo(at - 6, 0);
  ctx.lineTo(at + 6, 0);
  ctx.lineTo(at, 8);
  ctx.fill();
}

type Colour = (name: string) => string;
type X = (position: number) => number;

/** Hatches idle times, and writes their duration where there is space. */
function paintGaps(
  ctx: CanvasRenderingContext2D,
  axis: Axis,
  x: X,
  { width, height }: Pick<Box, "width" | "height">,
  colour: Colour,
): void {
  ctx.strokeStyle = colour("--strong");
  ctx.lineWidth = 1;
  for (const gap of axis.gaps) {
    const [a, b] = [Math.max(-height, x(gap.from)), Math.min(width + height, x(gap.to))];
    if (b - a < 3) continue;
    ctx.save();
    ctx.beginPath();
    ctx.rect(a, markerHeight, b - a, height - markerHeight);
    ctx.clip();
    ctx.globalAlpha = 0.5;
    ctx.beginPath();
    for (let i = a - height; i < b; i += 6) {
      ctx.moveTo(i, height);
      ctx.lineTo(i + height, 0);
    }
    ctx.stroke();
    ctx.restore();
    const label = duration(gap.ms);
    ctx.font = "10px system-ui, sans-serif";
    const w = ctx.measureText(label).width;
    if (w + 8 > b - a) continue;
    ctx.fillStyle = colour("--raised");
    ctx.fillRect((a + b - w) / 2 - 3, markerHeight + 4, w + 6, height - markerHeight - 8);
    ctx.fillStyle = colour("--muted");
    ctx.textBaseline = "middle";
    ctx.fillText(label, (a + b - w) / 2, markerHeight + (height - markerHeight) / 2);
  }
}

interface Box {
  width: number;
  height: number;
  played: number;
}

/** Draws a notch where the recording leaves a silence out. */
function paintSkips(ctx: CanvasRenderingContext2D, axis: Axis, x: X, { width, height }: Box, colour: Colour): void {
  ctx.fillStyle = colour("--muted");
  let last = -4;
  for (const { at } of axis.skips) {
    const place = Math.round(x(at));
    if (place < 0 || place > width || place - last < 4) continue;
    last = place;
    for (let y = markerHeight; y < height; y += 4) ctx.fillRect(place, y, 1, 2);
  }
}

/** Draws events that have no times, and are not all loaded. */
function paintEvenly(ctx: CanvasRenderingContext2D, { width, height, played }: Box, colour: Colour): void {
  for (let left = 0; left < width; left += 3) {
    ctx.fillStyle = colour(left <= played ? "--accent" : "--bar");
    ctx.fillRect(left, height - 8, 2, 8);
  }
}

function paintPositions(ctx: CanvasRenderingContext2D, positions: Float64Array, x: X, box: Box, colour: Colour): void {
  const columns = new Uint32Array(Math.ceil(box.width / 3) + 1);
  for (const at of positions) columns[Math.floor(x(at) / 3)]! += 1;
  const peak = columns.reduce((a, b) => Math.max(a, b), 1);
  const [done, coming] = [colour("--accent"), colour("--bar")];
  columns.forEach((n, c) => {
    if (n === 0) return;
    const h = 2 + (box.height - markerHeight - 4) * Math.sqrt(n / peak);
    ctx.fillStyle = c * 3 <= box.played ? done : coming;
    ctx.fillRect(c * 3, box.height - h, 2, h);
  });
}

function paintDensity(ctx: CanvasRenderingContext2D, index: ReplayIndex, x: X, box: Box, colour: Colour): void {
  const { from_ms: start, width_ms: slot, counts } = index.density;
  const peak = Math.max(1, ...counts);
  const room = box.height - markerHeight;
  const [done, coming] = [colour("--accent"), colour("--bar")];
  // The width of a slot is its duration. Narrow slots overlap.
  let reached = -1;
  counts.forEach((n, i) => {
    if (n === 0) return;
    const [from, to] = [x(start + i * slot), x(start + (i + 1) * slot)];
    if (to < 0 || from > box.width) return;
    const left = Math.max(reached, Math.floor(from));
    const right = Math.max(left + 2, Math.floor(to) - 1);
    const h = 2 + (room - 4) * Math.sqrt(n / peak);
    ctx.fillStyle = left <= box.played ? done : coming;
    ctx.fillRect(left, box.height - h, right - left, h);
    reached = left + 1;
  });
}

/** Draws the markers. Of overlapping ones only the most important is drawn. */
function paintMarkers(
  ctx: CanvasRenderingContext2D,
  markers: Marker[],
  x: (m: Marker) => number,
  { width, height }: Pick<Box, "width" | "height">,
  colour: Colour,
): void {
  const taken = new Map<number, number>();
  const shown = markers.filter((m) => m.kind === "error" && x(m) >= 0 && x(m) <= width).length;
  const lines = shown * 24 < width; // many lines would be a wall that hides the bars
  for (const m of markers) {
    const [name] = markerKinds[m.kind] ?? ["--muted", m.kind];
    const place = x(m);
    if (!tall.has(m.kind) || place < -4 || place > width + 4) continue;
    const at = Math.max(4, Math.min(width - 4, place)); // not cut off at either end
    const weight = m.kind === "error" && lines ? 2 : 1;
    const cell = Math.floor(at / 8);
    if ((taken.get(cell) ?? 0) >= weight) continue;
    taken.set(cell, weight);
    ctx.fillStyle = colour(name);
    ctx.beginPath();
    if (m.kind === "user") ctx.arc(at, 4.5, 3, 0, 7);
    else if (m.kind === "error") ctx.rect(at - 3, 1.5, 6, 6);
    else {
      ctx.moveTo(at, 0.5);
      ctx.lineTo(at + 4, 4.5);
      ctx.lineTo(at, 8.5);
      ctx.lineTo(at - 4, 4.5);
    }
    ctx.fill();
    if (m.kind === "error" && lines) ctx.fillRect(at - 0.5, markerHeight, 1, height - markerHeight);
  }
}

/** The markers near the pointer, nearest first; of equally near ones, errors first. */
export function markersNear(markers: Marker[], axis: Axis, width: number, px: number): Marker[] {
  const from = (m: Marker) => Math.abs(axis.place(positionOf(m, axis.kind)) * width - px);
  const order = (m: Marker) => (m.kind === "error" ? 0 : 1);
  return markers
    .map((m) => ({ m, d: from(m) }))
    .filter(({ d }) => d <= 6)
    .sort((a, b) => a.d - b.d || order(a.m) - order(b.m))
    .map(({ m }) => m);
}
