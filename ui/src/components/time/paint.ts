import { hasOpenRun, type ReplayIndex } from "@tapedeck/client";
import { prepareCanvas } from "../canvas";
import { markOf } from "../status";
import { type AgentLane, axisHeight, type Bar, minBarWidth, type Range, rowHeight, ticksOf, topOf } from "./layout";

interface Picture {
  lanes: AgentLane[];
  range: Range;
  now: number;
  scrolled: number;
  selected?: string;
  marked: string[];
  /** The indexes of sessions with wide bars, for their errors. */
  indexes: ReadonlyMap<string, ReplayIndex>;
}

type Canvas = NonNullable<ReturnType<typeof prepareCanvas>>;

const looks: Record<string, [fill: string, line: string]> = {
  running: ["--run-soft", "--run"],
  waiting: ["--warn-soft", "--warn"],
  complete: ["--ok-soft", "--ok"],
  failed: ["--bad-soft", "--bad"],
  cancelled: ["--raised", "--text"],
  interrupted: ["--warn-soft", "--warn"],
};

/** Draws the visible part. Status is not shown by colour alone: bars have marks, failed ones are hatched, running ones dashed. */
export function paint(canvas: HTMLCanvasElement, p: Picture): void {
  const g = prepareCanvas(canvas);
  if (!g || g.width === 0) return;
  const x = (t: number) => ((t - p.range.from) / (p.range.to - p.range.from)) * g.width;
  const bottom = p.scrolled + g.height;
  g.ctx.font = "11px ui-sans-serif, system-ui, sans-serif";
  g.ctx.textBaseline = "middle";
  grid(g, p, x);
  g.ctx.save();
  g.ctx.beginPath();
  g.ctx.rect(0, axisHeight, g.width, g.height);
  g.ctx.clip();
  g.ctx.translate(0, -p.scrolled);
  const places = new Map<string, number>();
  for (const lane of p.lanes) {
    const end = lane.top + lane.rows * rowHeight + 12;
    if (end < p.scrolled || lane.top > bottom) continue;
    g.ctx.fillStyle = g.colour("--line");
    g.ctx.fillRect(0, end - 1, g.width, 1);
    for (const b of lane.bars) {
      const left = x(b.from);
      const width = Math.max(minBarWidth, x(b.to) - left);
      if (left > g.width || left + width < 0) continue;
      places.set(b.session.id, topOf(lane, b));
      bar(g, b, left, width, topOf(lane, b), p);
    }
  }
  forks(g, p, places, x);
  nowLine(g, x(p.now), bottom);
  g.ctx.restore();
}

function grid(g: Canvas, p: Picture, x: (t: number) => number): void {
  const minStep = ((p.range.to - p.range.from) / g.width) * 84;
  for (const { at, label } of ticksOf(p.range, minStep)) {
    g.ctx.fillStyle = g.colour("--line");
    g.ctx.fillRect(Math.round(x(at)), 0, 1, g.height);
    g.ctx.fillStyle = g.colour("--muted");
    g.ctx.fillText(label, Math.round(x(at)) + 4, axisHeight / 2);
  }
  g.ctx.fillStyle = g.colour("--line");
  g.ctx.fillRect(0, axisHeight - 1, g.width, 1);
}

function bar(g: Canvas, b: Bar, left: number, width: number, top: number, p: Picture): void {
  const { ctx, colour } = g;
  const status = b.session.status ?? "idle";
  const [fill, line] = looks[status] ?? ["--raised", "--muted"];
  const height = rowHeight - 4;
  const from = Math.max(-4, left);
  const to = Math.min(g.width + 4, left + width);
  ctx.save();
  ctx.beginPath();
  ctx.roundRect(from, top, to - from, height, 3);
  ctx.fillStyle = colour(fill);
  ctx.fill();
  ctx.clip();
  if (status === "failed" || status === "interrupted") hatch(g, from, to, top, height, colour(line));
  ctx.fillStyle = colour(line);
  ctx.fillRect(from, top, 3, height);
  const index = p.indexes.get(b.session.id);
  leftAlone(g, b, left, width, top, index);
  errors(g, b, left, width, top, index);
  if (to - from > 24) {
    const mark = markOf(status);
    const text = to - from > 56 ? fitted(ctx, `${mark} ${b.session.title || b.session.id}`, to - from - 20) : mark;
    const wide = Math.min(to - from - 8, ctx.measureText(text).width + 6);
    ctx.fillStyle = colour(fill);
    ctx.fillRect(from + 5, top + 2, wide, height - 4);
    ctx.fillStyle = colour(line);
    ctx.fillText(text, from + 8, top + height / 2 + 0.5);
  }
  ctx.restore();
  ctx.strokeStyle = colour(line);
  ctx.lineWidth = 1;
  ctx.setLineDash(hasOpenRun(status) ? [3, 2] : []);
  ctx.beginPath();
  ctx.roundRect(from + 0.5, top + 0.5, to - from - 1, height - 1, 3);
  ctx.stroke();
  ctx.setLineDash([]);
  if (b.session.id !== p.selected && !p.marked.includes(b.session.id)) return;
  ctx.strokeStyle = colour("--accent");
  ctx.lineWidth = 2;
  ctx.beginPath();
  ctx.roundRect(from - 2, top - 2, to - from + 4, height + 4, 5);
  ctx.stroke();
}

/** Shortens a text to fit, approximately. */
function fitted(ctx: CanvasRenderingContext2D, text: string, width: number): string {
  const whole = ctx.measureText(text).width;
  if (whole <= width) return text;
  const letters = Math.floor((text.length * width) / whole) - 1;
  return `${text.slice(0, Math.max(1, letters)).trimEnd()}…`;
}

function hatch(g: Canvas, from: number, to: number, top: number, height: number, line: string): void {
  g.ctx.strokeStyle = line;
  g.ctx.globalAlpha = 0.25;
  g.ctx.lineWidth = 1.5;
  g.ctx.beginPath();
  for (let x = from - height; x < to; x += 6) {
    g.ctx.moveTo(x, top + height);
    g.ctx.lineTo(x + height, top);
  }
  g.ctx.stroke();
  g.ctx.globalAlpha = 1;
}

/** Thins the bar where the session was left alone. */
function leftAlone(g: Canvas, b: Bar, left: number, width: number, top: number, index?: ReplayIndex): void {
  const length = Math.max(1, b.to - b.from);
  for (const gap of index?.gaps ?? []) {
    if (!gap.skipped) continue;
    const from = left + ((Date.parse(gap.from) - b.from) / length) * width;
    const wide = (gap.ms / length) * width;
    if (wide < 3) continue;
    g.ctx.fillStyle = g.colour("--bg");
    g.ctx.fillRect(from + 1, top, wide - 2, rowHeight / 2 - 3);
    g.ctx.fillRect(from + 1, top + rowHeight / 2 - 1, wide - 2, rowHeight / 2 - 3);
  }
}

function errors(g: Canvas, b: Bar, left: number, width: number, top: number, index?: ReplayIndex): void {
  if (!index) return;
  g.ctx.fillStyle = g.colour("--bad");
  const length = Math.max(1, b.to - b.from);
  for (const m of index.markers) {
    if (m.kind !== "error") continue;
    const x = left + ((Date.parse(m.at) - b.from) / length) * width;
    g.ctx.fillRect(x - 1, top, 2, rowHeight - 4);
  }
}

/** Draws a line from each session to its forks. */
function forks(g: Canvas, p: Picture, places: Map<string, number>, x: (t: number) => number): void {
  g.ctx.strokeStyle = g.colour("--muted");
  g.ctx.fillStyle = g.colour("--muted");
  g.ctx.lineWidth = 1;
  const middle = rowHeight / 2 - 2;
  for (const lane of p.lanes) {
    for (const b of lane.bars) {
      const from = b.session.parent && places.get(b.session.parent);
      const to = places.get(b.session.id);
      if (!from || !to) continue;
      const at = Math.round(x(b.from)) + 0.5;
      g.ctx.beginPath();
      g.ctx.moveTo(at, from + middle);
      g.ctx.lineTo(at, to + middle);
      g.ctx.stroke();
      g.ctx.fillRect(at - 3, from + middle - 3, 6, 6);
    }
  }
}

function nowLine(g: Canvas, x: number, bottom: number): void {
  if (x < 0 || x > g.width) return;
  g.ctx.fillStyle = g.colour("--accent");
  g.ctx.fillRect(Math.round(x), 0, 1, bottom);
}
