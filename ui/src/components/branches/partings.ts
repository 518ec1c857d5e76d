import type { Branch } from "@/fold/types";
import type { Row } from "../conversation/rows";
import { nameOf } from "./tree";

/** One of the ways that a conversation went on. */
export interface Way {
  /** The branch: a session, or what was taken back. */
  key: string;
  name: string;
  /** How it goes on: what the user said next. */
  says?: string;
  taken: boolean;
  session: string;
  /** Where that is: the end of its next turn; absent for live. */
  at?: number;
  branch: Branch;
}

/** A place where conversations that were one part. */
export interface Parting {
  offset: number;
  ways: Way[];
}

/** The places where the session and what was taken back in it part from others, by offset. */
export function partingsOf(branches: Branch[]): Parting[] {
  const own = branches.find((b) => b.current);
  if (!own) return [];
  const lines = [own, ...branches.filter((b) => b.kind === "rewound")];
  const out: Parting[] = [];
  for (const line of lines) {
    const at = new Map<number, Branch[]>();
    for (const b of branches) {
      if (b.parent !== line.id || b.kind === "copy" || b === line) continue;
      at.set(b.fork_at, [...(at.get(b.fork_at) ?? []), b]);
    }
    for (const [offset, others] of at) out.push({ offset, ways: waysOf(offset, line, others) });
  }
  const parent = branches.find((b) => b.id === own.parent);
  if (parent && own.kind === "fork") {
    const siblings = branches.filter((b) => b.parent === own.parent && b.fork_at === own.fork_at && b.kind === "fork");
    out.push({ offset: own.fork_at, ways: waysOf(own.fork_at, parent, siblings) });
  }
  return out.sort((a, b) => a.offset - b.offset);
}

/** What was taken back came first, then the line itself, then its forks, each the oldest first. */
function waysOf(offset: number, line: Branch, others: Branch[]): Way[] {
  const byAge = [...others].sort((a, b) => Date.parse(a.at ?? "") - Date.parse(b.at ?? ""));
  const taken = byAge.filter((b) => b.kind === "rewound");
  const forks = byAge.filter((b) => b.kind !== "rewound");
  return [...taken, line, ...forks].map((b) => wayOf(offset, b));
}

function wayOf(offset: number, b: Branch): Way {
  const next = b.invocations?.findIndex((i) => i.first >= offset) ?? -1;
  const turn = b.invocations?.[next];
  const taken = b.kind === "rewound";
  const isLast = next === (b.invocations?.length ?? 0) - 1 && !b.invocations_left_out;
  const at = taken ? b.to : turn && !isLast ? turn.last + 1 : undefined;
  return { key: b.id, name: nameOf(b), says: turn?.title, taken, session: b.session, at, branch: b };
}

/** A parting beside the row at which it is. */
export interface Placed {
  ways: Way[];
  active: number;
  /** Nothing comes after it: it is below the row. */
  below: boolean;
}

/** Puts partings to the rows that come after them, as far as the conversation at the playhead goes there. */
export function place(partings: Parting[], rows: Row[], playhead: number): Map<string, Placed> {
  const out = new Map<string, Placed>();
  const places = rows.filter((r) => r.kind !== "end" && r.kind !== "gap");
  const last = rows.at(-1);
  for (const p of partings) {
    const i = firstFrom(places, p.offset);
    const row = places[i];
    const below = row === undefined;
    const shown = row ?? last;
    if (!shown || (below && playhead < p.offset)) continue;
    const active = p.ways.findIndex((w) => goes(w, shown, below));
    if (active < 0) continue;
    const here = out.get(shown.key);
    out.set(shown.key, here ? both(here, p.ways) : { ways: p.ways, active, below });
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

/** Whether what is seen at a row is this way. A jump is of no range: it is the session's own. */
function goes(w: Way, row: Row, below: boolean): boolean {
  const b = w.branch;
  if (!b.current && b.kind !== "rewound") return false;
  if (b.current && (below || row.kind === "jump")) return true;
  return (b.ranges ?? []).some((r) => r.from <= row.offset && row.offset < r.to) && !below;
}

/** Two partings at one row are one: nothing that is seen is between them. */
function both(a: Placed, ways: Way[]): Placed {
  const have = new Set(a.ways.map((w) => w.key));
  return { ...a, ways: [...a.ways, ...ways.filter((w) => !have.has(w.key))] };
}
