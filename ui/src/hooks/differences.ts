import { type RefObject, useCallback, useEffect, useState } from "react";
import { useKeys } from "./keys";

/**
 * Leads through the differences of a comparison: elements with `data-difference` in a
 * scrolled area. The first one is in view from the beginning.
 */
export function useDifferences(scroller: RefObject<HTMLElement | null>, count: number) {
  const [at, setAt] = useState(0);
  const go = useCallback(
    (n: number, focus = true) => {
      const all = scroller.current?.querySelectorAll<HTMLElement>("[data-difference]") ?? [];
      const to = Math.max(0, Math.min(all.length - 1, n));
      setAt(to);
      if (focus) all[to]?.focus({ preventScroll: true });
      all[to]?.scrollIntoView({ block: focus ? "start" : "nearest" });
    },
    [scroller],
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: with each other comparison
  useEffect(() => go(0, false), [go, count]);
  const [previous, next] = [() => go(at - 1), () => go(at + 1)];
  useKeys({ "[": previous, "]": next });
  return { at, previous, next };
}
