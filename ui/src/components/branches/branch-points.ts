import type { Branch } from "@tapedeck/client";
import type { Row } from "../conversation/rows";
import { branchName } from "./tree";

/** One of the ways in which a conversation continues after a branch point. */
export interface Alternative {
  /** The id of the branch: a session, or reverted events. */
  key: string;
  name: string;
  /** The user's next message. */
  nextMessage?: string;
  reverted: boolean;
  session: string;
  /** The offset to open: the end of its next turn; absent for live. */
  at?: number;
  branch: Branch;
}

/** An offset at which branches leave a conversation. */
export interface BranchPoint {
  offset: number;
  alternatives: Alternative[];
}

/** The branch points of the session, and of the events reverted in it, by offset. */
export function branchPointsOf(branches: Branch[]): BranchPoint[] {
  const own = branches.find((b) => b.current);
  if (!own) return [];
  const lines = [own, ...branches.filter((b) => b.kind === "rewound")];
  const out: BranchPoint[] = [];
  for (const line of lines) {
    const at = new Map<number, Branch[]>();
    for (const b of branches) {
      if (b.parent !== line.id || b.kind === "copy" || b === line) continue;
      at.set(b.fork_at, [...(at.get(b.fork_at) ?? []), b]);
    }
    for (const [offset, others] of at) out.push({ offset, alternatives: alternativesAt(offset, line, others) });
  }
  const parent = branches.find((b) => b.id === own.parent);
  if (parent && own.kind === "fork") {
    const siblings = branches.filter((b) => b.parent === own.parent && b.fork_at === own.fork_at && b.kind === "fork");
    out.push({ offset: own.fork_at, alternatives: alternativesAt(own.fork_at, parent, siblings) });
  }
  return out.sort((a, b) => a.offset - b.offset);
}

/** Reverted branches first, then the line itself, then its forks; each oldest first. */
function alternativesAt(offset: number, line: Branch, others: Branch[]): Alternative[] {
  const byAge = [...others].sort((a, b) => Date.parse(a.at ?? "") - Date.parse(b.at ?? ""));
  const reverted = byAge.filter((b) => b.kind === "rewound");
  const forks = byAge.filter((b) => b.kind !== "rewound");
  return [...reverted, line, ...forks].map((b) => alternativeOf(offset, b));
}

function alternativeOf(offset: number, b: Branch): Alternative {
  const next = b.invocations?.findIndex((i) => i.first >= offset) ?? -1;
  const turn = b.invocations?.[next];
  const reverted = b.kind === "rewound";
  const isLast = next === (b.invocations?.length ?? 0) - 1 && !b.invocations_left_out;
  const at = reverted ? b.to : turn && !isLast ? turn.last + 1 : undefined;
  return { key: b.id, name: branchName(b), nextMessage: turn?.title, reverted, session: b.session, at, branch: b };
}

/** A branch point, placed at a row. */
export interface PlacedBranchPoint {
  alternatives: Alternative[];
  active: number;
  /** It is below the row, because no row follows it. */
  below: boolean;
}

/** Places each branch point at the row after it, if the conversation at the playhead reaches it. */
export function place(branchPoints: BranchPoint[], rows: Row[], playhead: number): Map<string, PlacedBranchPoint> {
  const out = new Map<string, PlacedBranchPoint>();
  const places = rows.filter((r) => r.kind !== "end" && r.kind !== "gap");
  const last = rows.at(-1);
  for (const p of branchPoints) {
    const i = firstFrom(places, p.offset);
    const row = places[i];
    const below = row === undefined;
    const shown = row ?? last;
    if (!shown || (below && playhead < p.offset)) continue;
    const active = p.alternatives.findIndex((w) => isShownAt(w, shown, below));
    if (active < 0) continue;
    const here = out.get(shown.key);
    out.set(shown.key, here ? merged(here, p.alternatives) : { alternatives: p.alternatives, active, below });
  }
  return out;
}

function firstFrom(rows: Row[], offset: number): number {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const mid = (low + high) >> 1;
    if ((rows[mid] as Row).offset < offset) low = mid + 1;
    else high = mid;
  }
  return low;
}

/** Whether the row belongs to this alternative. The row of a jump has no range: it belongs to the session itself. */
function isShownAt(w: Alternative, row: Row, below: boolean): boolean {
  const b = w.branch;
  if (!b.current && b.kind !== "rewound") return false;
  if (b.current && (below || row.kind === "jump")) return true;
  return (b.ranges ?? []).some((r) => r.from <= row.offset && row.offset < r.to) && !below;
}

/** Merges two branch points at one row: no row lies between them. */
function merged(a: PlacedBranchPoint, alternatives: Alternative[]): PlacedBranchPoint {
  const have = new Set(a.alternatives.map((w) => w.key));
  return { ...a, alternatives: [...a.alternatives, ...alternatives.filter((w) => !have.has(w.key))] };
}
