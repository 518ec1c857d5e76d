import { useCallback, useMemo, useState } from "react";
import { isNotable, type Row } from "@/components/conversation/rows";

/** Which rows are unfolded: those that matter, all, or none. */
export type Unfolding = "usual" | "all" | "none";

export interface Unfolded {
  isOpen: (row: Row) => boolean;
  toggle: (row: Row) => void;
  unfold: (row: Row) => void;
  /** Unfolds all rows, none, or the usual ones, whatever the user chose for single rows. */
  setAll: (which: Unfolding) => void;
  which: Unfolding;
}

interface State {
  which: Unfolding;
  /** What the user chose for single rows. It stays when a row becomes notable, such as a call that fails. */
  chosen: ReadonlyMap<string, boolean>;
}

/** Whether a row is unfolded: what the user chose for it, otherwise what holds for all. */
export function isUnfolded({ which, chosen }: State, row: Row): boolean {
  return chosen.get(row.key) ?? (which === "usual" ? isNotable(row) : which === "all");
}

/** The rows that are unfolded. */
export function useUnfolded(): Unfolded {
  const [state, set] = useState<State>({ which: "usual", chosen: new Map() });
  const choose = useCallback((row: Row, open: (s: State) => boolean) => {
    set((s) => ({ ...s, chosen: new Map(s.chosen).set(row.key, open(s)) }));
  }, []);
  const toggle = useCallback((row: Row) => choose(row, (s) => !isUnfolded(s, row)), [choose]);
  const unfold = useCallback((row: Row) => choose(row, () => true), [choose]);
  const setAll = useCallback((which: Unfolding) => set({ which, chosen: new Map() }), []);
  return useMemo(
    () => ({ isOpen: (row) => isUnfolded(state, row), toggle, unfold, setAll, which: state.which }),
    [state, toggle, unfold, setAll],
  );
}
