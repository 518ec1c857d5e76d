import type { DiffChange, DiffItem, DiffTurn } from "@tapedeck/client";

/** Two items that are shown side by side; one may be missing. */
export interface Pair {
  a?: DiffItem;
  b?: DiffItem;
  change?: DiffChange;
}

/** The items of a turn in pairs: a changed item beside its old form. */
export function pairsOf(turn: DiffTurn): Pair[] {
  const left = itemsOf(turn.a);
  const right = itemsOf(turn.b);
  const ofA = new Map<number, DiffChange>();
  const ofB = new Map<number, DiffChange>();
  for (const c of turn.changes ?? []) {
    if (c.a_offset !== undefined) ofA.set(c.a_offset, c);
    if (c.b_offset !== undefined) ofB.set(c.b_offset, c);
  }
  const out: Pair[] = [];
  let [i, j] = [0, 0];
  while (i < left.length || j < right.length) {
    const [a, b] = [left[i], right[j]];
    const [ca, cb] = [a && ofA.get(a.offset), b && ofB.get(b.offset)];
    if (a && (!b || ca?.op === "removed")) {
      out.push({ a, change: ca });
      i++;
    } else if (b && (!a || cb?.op === "added")) {
      out.push({ b, change: cb });
      j++;
    } else {
      out.push({ a, b, change: ca === cb ? ca : (ca ?? cb) });
      i++;
      j++;
    }
  }
  return out;
}

function itemsOf(side: DiffTurn["a"]): DiffItem[] {
  return side ? [...side.messages, ...side.tools].sort((x, y) => x.offset - y.offset) : [];
}
