import { brief, plural } from "../format";
import { type BranchLane, contains, type Drawing, type Spot } from "./layout";
import { branchName } from "./tree";

/** The y position of the line of a lane. Below it is space for the title of a turn. */
export function middleOf(row: number, rowHeight: number): number {
  return row * rowHeight + rowHeight / 2 - 6;
}

/** Narrower columns have no titles. */
const minTitled = 80;
const charWidth = 6.4;

/** All lines, in two paths: one for active events, one for reverted ones. */
export function Lines({ drawing, rows }: { drawing: Drawing; rows: number[] }) {
  const first = rows[0] ?? 0;
  const last = rows.at(-1) ?? -1;
  const middle = (row: number) => middleOf(row, drawing.rowHeight);
  const active: string[] = [];
  const reverted: string[] = [];
  drawing.lanes.forEach((l, row) => {
    if (row < first || Math.min(row, l.parent < 0 ? row : l.parent) > last) return;
    const of = l.branch.kind === "rewound" ? reverted : active;
    const x = drawing.x(l.start);
    if (l.parent >= 0) {
      const from = drawing.x(Math.max(0, l.start - 1));
      const turn = (from + x) / 2;
      of.push(`M${from} ${middle(l.parent)}H${turn - 7}q7 0 7 7V${middle(row) - 7}q0 7 7 7H${x}`);
    }
    const end = drawing.spots[row]?.at(-1);
    if (end) of.push(`M${x} ${middle(row)}H${end.x + (end.kind === "folded" ? end.width : 0)}`);
  });
  return (
    <>
      <path d={active.join("")} fill="none" strokeWidth="2" className="stroke-strong" />
      <path d={reverted.join("")} fill="none" strokeWidth="2" className="stroke-strong" strokeDasharray="4 4" />
    </>
  );
}

interface Props {
  id: string;
  spot: Spot;
  lane: BranchLane;
  y: number;
  /** The space for the title of a turn, below it. */
  width: number;
  at?: number;
  last: boolean;
  selected: boolean;
  onPick: () => void;
  onOpen: () => void;
}

export function SpotView({ id, spot, lane, y, width, at, last, selected, onPick, onOpen }: Props) {
  const current = lane.branch.current === true;
  const here = spot.kind === "turn" && isHere(lane, spot, at, last);
  return (
    <g
      id={id}
      role="treeitem"
      tabIndex={-1}
      aria-selected={selected}
      aria-level={lane.depth + 1}
      aria-label={spotLabel(lane, spot, here, last)}
      data-spot={spot.kind}
      onClick={onPick}
      onDoubleClick={onOpen}
      className="cursor-pointer outline-none"
    >
      <title>{titleOf(spot)}</title>
      {spot.kind === "turn" && <rect x={spot.x - 15} y={y - 22} width="30" height="52" fill="transparent" />}
      {selected && <Ring spot={spot} y={y} />}
      {spot.kind === "turn" && <Node x={spot.x} y={y} lane={lane} current={current} head={last} />}
      {spot.kind === "turn" && width >= minTitled && (
        <text
          x={spot.x}
          y={y + 27}
          textAnchor="middle"
          className={`text-[11px] ${selected ? "fill-text" : "fill-muted"}`}
        >
          {brief(titleOf(spot), Math.floor((width - 10) / charWidth))}
        </text>
      )}
      {spot.kind === "folded" && <FoldedTurns spot={spot} y={y} />}
      {spot.kind === "stub" && (
        <rect
          x={spot.x - 6}
          y={y - 6}
          width="12"
          height="12"
          rx="2"
          className="fill-bg stroke-strong"
          strokeWidth="2"
        />
      )}
      {here && <path d={`M${spot.x - 5} ${y - 19}h10l-5 7z`} className="fill-accent" />}
    </g>
  );
}

/** Whether the playhead is at a turn: one of this session, or one that was reverted in it. */
function isHere(lane: BranchLane, spot: Spot & { kind: "turn" }, at: number | undefined, last: boolean): boolean {
  if (at === undefined) return lane.branch.current === true && last;
  const inLog = lane.branch.current || lane.branch.kind === "rewound";
  return inLog === true && contains(spot.turn, at);
}

function Node({
  x,
  y,
  lane,
  current,
  head,
}: {
  x: number;
  y: number;
  lane: BranchLane;
  current: boolean;
  head: boolean;
}) {
  if (lane.branch.kind === "rewound")
    return (
      <>
        <circle cx={x} cy={y} r="6" className="fill-bg stroke-muted" strokeWidth="1.5" strokeDasharray="2 2" />
        <path d={`M${x - 8} ${y + 5}L${x + 8} ${y - 5}`} className="stroke-muted" strokeWidth="1.5" />
      </>
    );
  return (
    <>
      <circle
        cx={x}
        cy={y}
        r="6"
        strokeWidth="2"
        className={current ? "fill-accent stroke-accent" : "fill-bg stroke-text"}
      />
      {head && (
        <circle
          cx={x}
          cy={y}
          r="9"
          fill="none"
          strokeWidth="1.5"
          className={current ? "stroke-accent" : "stroke-text"}
        />
      )}
    </>
  );
}

function FoldedTurns({ spot, y }: { spot: Spot & { kind: "folded" }; y: number }) {
  const mid = spot.x + spot.width / 2;
  const wide = spot.width > 80;
  return (
    <>
      <rect x={spot.x} y={y - 10} width={spot.width} height="20" className="fill-bg" />
      <text x={mid} y={y + 4} textAnchor="middle" className="fill-muted text-[11px]">
        {wide ? `· ${plural(spot.turns, "turn")} ·` : `·${spot.turns}·`}
      </text>
    </>
  );
}

function Ring({ spot, y }: { spot: Spot; y: number }) {
  const width = spot.kind === "folded" ? spot.width : 26;
  const x = spot.kind === "folded" ? spot.x : spot.x - 13;
  return (
    <rect
      x={x}
      y={y - 13}
      width={width}
      height="26"
      rx="6"
      strokeWidth="2"
      className="fill-accent-soft stroke-accent"
    />
  );
}

function titleOf(s: Spot): string {
  if (s.kind === "turn") return s.turn.title || "A turn without text";
  return s.kind === "folded" ? plural(s.turns, "turn") : plural(s.events, "event");
}

function spotLabel(lane: BranchLane, s: Spot, here: boolean, last: boolean): string {
  const words = [titleOf(s)];
  if (s.kind === "turn") words.push(`turn ${s.turn.column + 1}`);
  if (s.kind === "folded" && s.from >= 0) words.push("folded");
  words.push(lane.branch.kind === "rewound" ? branchName(lane.branch).toLowerCase() : `in ${branchName(lane.branch)}`);
  if (last && lane.branch.kind !== "rewound") words.push("head");
  if (here) words.push("at the playhead");
  return words.join(", ");
}
