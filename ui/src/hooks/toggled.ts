import { useCallback, useState } from "react";

/** A set of items that are on; empty at first. */
export function useToggled<T>(): [on: ReadonlySet<T>, toggle: (item: T) => void] {
  const [on, set] = useState<ReadonlySet<T>>(new Set());
  const toggle = useCallback((item: T) => {
    set((old) => {
      const next = new Set(old);
      if (!next.delete(item)) next.add(item);
      return next;
    });
  }, []);
  return [on, toggle];
}
