import type { Branch, IndexedInvocation, ReplayIndex } from "@/fold/types";
import { treeOf } from "./tree";

/** One invocation on a lane. */
export interface Turn {
  first: number;
  last: number;
  title: string;
  thread: string;
  /** How many turns are before it, from the beginning of the tree. */
  column: number;
}

/** A branch, drawn as a line from where it leaves its parent. */
export interface Lane {
  branch: Branch;
  depth: number;
  /** The lane that it leaves; -1 for none. */
  parent: number;
  /** The column of its first turn, whether it has one or not. */
  start: number;
  turns: Turn[];
  /** Turns after these of which only the number is known. */
  more: number;
}

/** What stands on a lane: a turn, turns that are drawn as one, or a branch in which none began. */
export type Spot =
  | { kind: "turn"; key: string; x: number; turn: Turn }
  /** `from` is the column at which the run begins, -1 if it cannot be opened; `opens` the key of its first turn. */
  | { kind: "run"; key: string; x: number; width: number; turns: number; from: number; opens: string }
  | { kind: "stub"; key: string; x: number; events: number };

export interface Drawing {
  lanes: Lane[];
  spots: Spot[][];
  width: number;
  /** Where a column is. */
  x: (column: number) => number;
}

export const columnWidth = 30;
export const runWidth = 110;
/** Fewer columns are all drawn. */
const drawnWhole = 48;
/** Fewer columns than these between two that matter are drawn, too. */
const leastRun = 6;

type Known = { first: number; last: number; title?: string; thread: string };

/** The lanes of a tree, each after the one that it leaves. */
export function lanesOf(branches: Branch[], index?: ReplayIndex): Lane[] {
  const tree = treeOf(branches);
  const place = new Map(tree.map(({ branch }, i) => [branch.id, i]));
  const current = branches.find((b) => b.current);
  const lanes: Lane[] = [];
  for (const { branch, depth } of tree) {
    const parent = branch.parent === undefined ? -1 : (place.get(branch.parent) ?? -1);
    const above = lanes[parent];
    const start = above ? columnOf(above, branch.fork_at) : 0;
    const known = knownOf(branch, above !== undefined, index?.invocations ?? [], current);
    const turns = known.map((k, i) => ({ ...k, title: k.title ?? "", column: start + i }));
    const all = (branch.invocations?.length ?? 0) + (branch.invocations_left_out ?? 0);
    const inherited = above && branch.current ? (branch.invocations ?? []).length - ownOf(branch).length : 0;
    lanes.push({ branch, depth, parent, start, turns, more: Math.max(0, all - inherited - turns.length) });
  }
  return lanes;
}

function ownOf(b: Branch): Known[] {
  return (b.invocations ?? []).filter((i) => i.first >= b.fork_at);
}

/** The turns of a branch that are its own. Of the session at hand the index knows more of them than the tree. */
function knownOf(b: Branch, hasParent: boolean, all: IndexedInvocation[], current?: Branch): Known[] {
  const told: Known[] = hasParent && b.kind !== "rewound" ? ownOf(b) : (b.invocations ?? []);
  if (!b.invocations_left_out || b.session !== current?.session) return told;
  const from = hasParent ? b.fork_at : 0;
  const within = all.filter(
    (i) =>
      i.first >= from &&
      (!b.thread || b.thread === i.thread) &&
      (b.ranges ?? []).some((r) => r.from <= i.first && i.first < r.to),
  );
  return within.length > told.length ? within : told;
}

/** The column of what comes next at an offset of a lane. */
function columnOf(lane: Lane, offset: number): number {
  const n = lane.turns.filter((t) => t.first < offset).length;
  return lane.start + n + (n === lane.turns.length && n > 0 ? lane.more : 0);
}

/** Where everything goes. Runs of columns in which nothing parts are drawn as one, unless they were opened. */
export function draw(lanes: Lane[], opened: ReadonlySet<number>, playhead?: number): Drawing {
  const columns = Math.max(1, ...lanes.map((l) => l.start + l.turns.length + l.more));
  const runs = columns <= drawnWhole ? [] : runsOf(lanes, columns, playhead).filter((r) => !opened.has(r.from));
  const xs = new Float64Array(columns + 2);
  let x = columnWidth;
  let r = 0;
  for (let c = 0; c < xs.length; c++) {
    xs[c] = x;
    while (runs[r] && (runs[r] as Stretch).to <= c) r++;
    const run = runs[r];
    if (run && run.from <= c && c < run.to) x += runWidth / (run.to - run.from);
    else x += columnWidth;
  }
  const at = (c: number) => xs[Math.max(0, Math.min(xs.length - 1, c))] as number;
  return { lanes, spots: lanes.map((l) => spotsOf(l, runs, at)), width: x + columnWidth, x: at };
}

interface Stretch {
  from: number;
  to: number;
}

/** The stretches of columns that nothing begins, ends or leaves in. */
function runsOf(lanes: Lane[], columns: number, playhead?: number): Stretch[] {
  const keep = new Uint8Array(columns + 2);
  const hold = (c: number) => {
    if (c >= 0 && c < keep.length) keep[c] = 1;
  };
  const ends = new Set<number>();
  for (const l of lanes) {
    hold(l.start - 1);
    hold(l.start);
    hold(l.start + l.turns.length - 1);
    if (l.more > 0) ends.add(l.start + l.turns.length);
    for (const t of l.turns) if (l.branch.current && playhead !== undefined && holds(t, playhead)) hold(t.column);
  }
  const out: Stretch[] = [];
  for (let from = 0; from < columns; from++) {
    if (keep[from]) continue;
    let to = from;
    while (to < columns && !keep[to] && !(to > from && ends.has(to))) to++;
    if (to - from >= leastRun || ends.has(from)) out.push({ from, to });
    from = to - 1;
  }
  return out;
}

/** Whether a turn is where the playhead is. */
export function holds(t: Turn, playhead: number): boolean {
  return t.first < playhead && playhead <= t.last + 1;
}

function spotsOf(l: Lane, runs: Stretch[], x: (c: number) => number): Spot[] {
  const out: Spot[] = [];
  const id = l.branch.id;
  const end = l.start + l.turns.length;
  for (let i = 0; i < l.turns.length; i++) {
    const turn = l.turns[i] as Turn;
    const run = runs.find((r) => r.from <= turn.column && turn.column < r.to);
    if (!run) {
      out.push({ kind: "turn", key: `${id} ${turn.first}`, x: x(turn.column), turn });
      continue;
    }
    const n = Math.min(run.to, end) - turn.column;
    out.push(runAt(id, run.from, turn.column, n, x, `${id} ${turn.first}`));
    i += n - 1;
  }
  if (l.more > 0) out.push(runAt(id, -1, end, l.more, x)); // they have no names, so they cannot be opened
  if (out.length === 0) {
    const events = Math.max(0, l.branch.to - l.branch.from);
    out.push({ kind: "stub", key: `${id} -`, x: x(l.start), events });
  }
  return out;
}

function runAt(id: string, from: number, column: number, turns: number, x: (c: number) => number, opens = ""): Spot {
  const left = x(column);
  const width = Math.max(columnWidth, x(column + turns) - left);
  return { kind: "run", key: `${id} ${column}-`, x: left, width, turns, from, opens };
}
