import type { Branch, IndexedInvocation, ReplayIndex } from "@tapedeck/client";
import { treeOf } from "./tree";

/** One invocation on a lane. */
export interface Turn {
  first: number;
  last: number;
  title: string;
  thread: string;
  /** The number of turns before it, from the root of the tree. */
  column: number;
}

/** A branch, drawn as a line from its branch point. */
export interface BranchLane {
  branch: Branch;
  depth: number;
  /** The index of its parent's lane; -1 for none. */
  parent: number;
  /** The column of its first turn, even if it has no turn yet. */
  start: number;
  turns: Turn[];
  /** The number of further turns, of which the details are not known. */
  more: number;
}

/** An element of a lane: a turn, several turns folded into one, or the stub of a branch without turns. */
export type Spot =
  | { kind: "turn"; key: string; x: number; turn: Turn }
  /** `from` is the first folded column, -1 if it cannot be unfolded; `opens` is the key of the first folded turn. */
  | { kind: "folded"; key: string; x: number; width: number; turns: number; from: number; opens: string }
  | { kind: "stub"; key: string; x: number; events: number };

export interface Drawing {
  lanes: BranchLane[];
  spots: Spot[][];
  width: number;
  rowHeight: number;
  /** The width of a column that is not folded. */
  columnWidth: number;
  /** The x position of a column. */
  x: (column: number) => number;
}

/** The space for the graph. A small tree is spread over it. */
export interface Area {
  width: number;
  height: number;
}

export const columnWidth = 30;
const maxColumnWidth = 260;
export const foldedWidth = 110;
const rowHeights = { min: 60, max: 110 };
/** Up to this number of columns, nothing is folded. */
const maxUnfolded = 48;
/** Shorter stretches are not folded. */
const minFolded = 6;

type Known = { first: number; last: number; title?: string; thread: string };

/** The lanes of a tree, each after its parent. */
export function branchLanes(branches: Branch[], index?: ReplayIndex): BranchLane[] {
  const tree = treeOf(branches);
  const place = new Map(tree.map(({ branch }, i) => [branch.id, i]));
  const current = branches.find((b) => b.current);
  const lanes: BranchLane[] = [];
  for (const { branch, depth } of tree) {
    const parent = branch.parent === undefined ? -1 : (place.get(branch.parent) ?? -1);
    const above = lanes[parent];
    const start = above ? columnOf(above, branch.fork_at) : 0;
    const known = knownInvocations(branch, above !== undefined, index?.invocations ?? [], current);
    const turns = known.map((k, i) => ({ ...k, title: k.title ?? "", column: start + i }));
    const all = (branch.invocations?.length ?? 0) + (branch.invocations_left_out ?? 0);
    const inherited = above && branch.current ? (branch.invocations ?? []).length - ownInvocations(branch).length : 0;
    lanes.push({ branch, depth, parent, start, turns, more: Math.max(0, all - inherited - turns.length) });
  }
  return lanes;
}

function ownInvocations(b: Branch): Known[] {
  return (b.invocations ?? []).filter((i) => i.first >= b.fork_at);
}

/** The own turns of a branch. For this session, the replay index may list more of them than the tree. */
function knownInvocations(b: Branch, hasParent: boolean, all: IndexedInvocation[], current?: Branch): Known[] {
  const listed: Known[] = hasParent && b.kind !== "rewound" ? ownInvocations(b) : (b.invocations ?? []);
  if (!b.invocations_left_out || b.session !== current?.session) return listed;
  const from = hasParent ? b.fork_at : 0;
  const within = all.filter(
    (i) =>
      i.first >= from &&
      (!b.thread || b.thread === i.thread) &&
      (b.ranges ?? []).some((r) => r.from <= i.first && i.first < r.to),
  );
  return within.length > listed.length ? within : listed;
}

/** The column of the next turn at an offset of a lane. */
function columnOf(lane: BranchLane, offset: number): number {
  const n = lane.turns.filter((t) => t.first < offset).length;
  return lane.start + n + (n === lane.turns.length && n > 0 ? lane.more : 0);
}

/** Computes all positions. Stretches of columns without a branch point are folded, unless the user opened them. */
export function draw(
  lanes: BranchLane[],
  opened: ReadonlySet<number>,
  playhead?: number,
  area: Area = { width: 0, height: 0 },
): Drawing {
  const columns = Math.max(1, ...lanes.map((l) => l.start + l.turns.length + l.more));
  const folded =
    columns <= maxUnfolded ? [] : foldedStretches(lanes, columns, playhead).filter((r) => !opened.has(r.from));
  const wide = spread(columns, folded, area.width);
  const xs = new Float64Array(columns + 2);
  let x = wide === columnWidth ? columnWidth : wide / 2 + columnWidth / 2;
  let r = 0;
  for (let c = 0; c < xs.length; c++) {
    xs[c] = x;
    while (folded[r] && (folded[r] as Stretch).to <= c) r++;
    const stretch = folded[r];
    if (stretch && stretch.from <= c && c < stretch.to) x += foldedWidth / (stretch.to - stretch.from);
    else x += wide;
  }
  const at = (c: number) => xs[Math.max(0, Math.min(xs.length - 1, c))] as number;
  const rowHeight = Math.max(rowHeights.min, Math.min(rowHeights.max, Math.floor(area.height / lanes.length)));
  return {
    lanes,
    spots: lanes.map((l) => spotsOf(l, folded, at)),
    width: Math.max((xs[columns - 1] as number) + (wide + columnWidth) / 2, columnWidth * 3),
    rowHeight,
    columnWidth: wide,
    x: at,
  };
}

/** The width of a column, so that the columns take the whole area if they are few. */
function spread(columns: number, folded: Stretch[], area: number): number {
  const foldedColumns = folded.reduce((n, r) => n + r.to - r.from, 0);
  const free = area - folded.length * foldedWidth - columnWidth * 2;
  const wide = Math.floor(free / Math.max(1, columns - foldedColumns));
  return Math.max(columnWidth, Math.min(maxColumnWidth, wide));
}

/** Where a lane leaves its parent: "in" a turn of it, or "after" one; 0 for before the first. */
export function leavesAt(lane: BranchLane, lanes: BranchLane[]): { turn: number; within: boolean } | undefined {
  const parent = lanes[lane.parent];
  if (!parent) return undefined;
  const last = parent.turns.findLast((t) => t.first < lane.branch.fork_at);
  return { turn: lane.start, within: last !== undefined && lane.branch.fork_at <= last.last };
}

interface Stretch {
  from: number;
  to: number;
}

/** The stretches of columns in which no branch begins, ends or forks. */
function foldedStretches(lanes: BranchLane[], columns: number, playhead?: number): Stretch[] {
  const keep = new Uint8Array(columns + 2);
  const keepColumn = (c: number) => {
    if (c >= 0 && c < keep.length) keep[c] = 1;
  };
  const ends = new Set<number>();
  for (const l of lanes) {
    keepColumn(l.start - 1);
    keepColumn(l.start);
    keepColumn(l.start + l.turns.length - 1);
    if (l.more > 0) ends.add(l.start + l.turns.length);
    for (const t of l.turns)
      if (l.branch.current && playhead !== undefined && contains(t, playhead)) keepColumn(t.column);
  }
  const out: Stretch[] = [];
  for (let from = 0; from < columns; from++) {
    if (keep[from]) continue;
    let to = from;
    while (to < columns && !keep[to] && !(to > from && ends.has(to))) to++;
    if (to - from >= minFolded || ends.has(from)) out.push({ from, to });
    from = to - 1;
  }
  return out;
}

/** Whether the playhead is in a turn. */
export function contains(t: Turn, playhead: number): boolean {
  return t.first < playhead && playhead <= t.last + 1;
}

function spotsOf(l: BranchLane, folded: Stretch[], x: (c: number) => number): Spot[] {
  const out: Spot[] = [];
  const id = l.branch.id;
  const end = l.start + l.turns.length;
  for (let i = 0; i < l.turns.length; i++) {
    const turn = l.turns[i] as Turn;
    const stretch = folded.find((r) => r.from <= turn.column && turn.column < r.to);
    if (!stretch) {
      out.push({ kind: "turn", key: `${id} ${turn.first}`, x: x(turn.column), turn });
      continue;
    }
    const n = Math.min(stretch.to, end) - turn.column;
    out.push(foldedSpot(id, stretch.from, turn.column, n, x, `${id} ${turn.first}`));
    i += n - 1;
  }
  if (l.more > 0) out.push(foldedSpot(id, -1, end, l.more, x)); // these turns have no details, so they cannot be unfolded
  if (out.length === 0) {
    const events = Math.max(0, l.branch.to - l.branch.from);
    out.push({ kind: "stub", key: `${id} -`, x: x(l.start), events });
  }
  return out;
}

function foldedSpot(
  id: string,
  from: number,
  column: number,
  turns: number,
  x: (c: number) => number,
  opens = "",
): Spot {
  const left = x(column);
  const width = Math.max(columnWidth, x(column + turns) - left);
  return { kind: "folded", key: `${id} ${column}-`, x: left, width, turns, from, opens };
}
