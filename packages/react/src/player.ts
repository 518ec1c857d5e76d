import type { DeckState, Player } from "@tapedeck/client/player";
import { useEffect, useMemo, useRef, useSyncExternalStore } from "react";

/** Whether two values have the same members, each the same object. */
export function shallowEqual(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || !a || !b) return false;
  const [x, y] = [a as Record<string, unknown>, b as Record<string, unknown>];
  const names = Object.keys(x);
  return names.length === Object.keys(y).length && names.every((n) => Object.is(x[n], y[n]));
}

/**
 * What `select` takes from the state of a player. The component is drawn again only if
 * it changes, as `equal` sees it: without `equal`, if a member is another object.
 */
export function usePlayer<T>(
  player: Player,
  select: (s: DeckState) => T,
  equal: (a: T, b: T) => boolean = shallowEqual,
): T {
  const drawn = useRef<{ value: T }>(undefined); // what the page shows: a new `select` keeps it if it is equal
  const get = useMemo(() => {
    let last: { state: DeckState; value: T } | undefined;
    return () => {
      const state = player.get();
      if (last?.state === state) return last.value;
      const before = last ?? drawn.current;
      const value = select(state);
      last = { state, value: before && equal(before.value, value) ? before.value : value };
      return last.value;
    };
  }, [player, select, equal]);
  const value = useSyncExternalStore(player.subscribe, get, get);
  useEffect(() => {
    drawn.current = { value };
  }, [value]);
  return value;
}
