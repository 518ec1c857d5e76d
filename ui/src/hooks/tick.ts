import { useEffect, useRef, useState } from "react";

/** The time now, in milliseconds, anew every so often while it is wanted. */
export function useNow(everyMs: number, wanted = true): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!wanted) return;
    const t = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(t);
  }, [everyMs, wanted]);
  return now;
}

/** A value that has stayed as it is for a while. */
export function useSettled<T>(value: T, ms: number): T {
  const [settled, set] = useState(value);
  useEffect(() => {
    const t = setTimeout(() => set(value), ms);
    return () => clearTimeout(t);
  }, [value, ms]);
  return settled;
}

/** A value that changes at most so often, and is right in the end. */
export function useThrottled<T>(value: T, ms: number): T {
  const [told, tell] = useState(value);
  const newest = useRef(value);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    newest.current = value;
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      tell(newest.current);
    }, ms);
  }, [value, ms]);
  useEffect(
    () => () => {
      clearTimeout(timer.current);
      timer.current = undefined;
    },
    [],
  );
  return told;
}
