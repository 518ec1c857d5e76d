import { useLayoutEffect, useRef, useState } from "react";

/** Whether two values are equal. Below the depth, objects must be the same ones. */
export function alike(a: unknown, b: unknown, depth: number): boolean {
  if (Object.is(a, b)) return true;
  if (depth === 0 || typeof a !== "object" || typeof b !== "object" || !a || !b) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [x, y] = [a as Record<string, unknown>, b as Record<string, unknown>];
  const keys = Object.keys(x);
  return keys.length === Object.keys(y).length && keys.every((k) => k in y && alike(x[k], y[k], depth - 1));
}

/** The earlier value while the new one is equal to it, so that components that get it are not drawn again. */
export function useSame<T extends object | undefined>(value: T, depth = 1): T {
  const [kept, keep] = useState(value);
  if (alike(kept, value, depth)) return kept;
  keep(value);
  return value;
}

/** Functions that stay the same, and do what their newest versions do. The names never change. */
export function useHandlers<T extends Record<string, (...a: never[]) => void>>(newest: T): T {
  const latest = useRef(newest);
  useLayoutEffect(() => {
    latest.current = newest;
  });
  const [stable] = useState(
    () =>
      Object.fromEntries(
        Object.keys(newest).map((k) => [k, (...a: never[]) => latest.current[k]?.(...a)]),
      ) as unknown as T,
  );
  return stable;
}
