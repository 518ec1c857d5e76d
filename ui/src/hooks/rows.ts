import type { ReplayIndex } from "@tapedeck/client";
import type { Deck } from "@tapedeck/client/player";
import { useCallback, useMemo, useState } from "react";
import { isFolded, marksOf, type Parts, type Row, rowsOf } from "@/components/conversation/rows";
import { hiddenBy, onlyThread } from "@/components/session/part";
import { useKeys } from "./keys";
import { useUnfolded } from "./unfolded";

interface Shown<V> {
  deck: Deck;
  /** The conversation at the playhead. */
  view: V | undefined;
  index: ReplayIndex | undefined;
  at: number;
  thread: string | undefined;
}

/** The conversation at the playhead, of one thread or of all: its parts, its rows and its reverted ranges. */
export function useRows<V extends Parts>({ deck, view, index, at, thread }: Shown<V>) {
  const parts = useMemo(() => view && onlyThread(view, thread), [view, thread]);
  const marks = useMemo(() => marksOf(index?.markers ?? [], at, thread), [index, at, thread]);
  const rows = useMemo(() => (parts ? rowsOf(parts, marks) : []), [parts, marks]);
  const hidden = useMemo(() => hiddenBy(marks, deck), [marks, deck]);
  return { parts, rows, hidden };
}

/** The selected row and the unfolded rows, with their shortcuts. */
export function useSelection(rows: Row[]) {
  const [selected, select] = useState<string>();
  const unfolded = useUnfolded();
  const { toggle, unfold } = unfolded;
  const chosen = rows.find((r) => r.key === selected);
  const walk = (by: number) => {
    const i = rows.findIndex((r) => r.key === selected);
    const to = i < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.max(0, Math.min(rows.length - 1, i + by));
    select(rows[to]?.key);
  };
  useKeys({
    j: () => walk(1),
    k: () => walk(-1),
    Enter: () => (chosen && isFolded(chosen) ? toggle(chosen) : false),
  });
  /** Selects a row, and unfolds it if possible. */
  const show = useCallback(
    (row: Row) => {
      select(row.key);
      if (isFolded(row)) unfold(row);
    },
    [unfold],
  );
  return { selected, select, unfolded, chosen, show };
}
