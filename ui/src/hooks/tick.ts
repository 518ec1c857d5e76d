import { useEffect, useRef, useState } from "react";

/** The current time in milliseconds, updated at an interval while it is wanted. */
export function useNow(everyMs: number, wanted = true): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!wanted) return;
    const t = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(t);
  }, [everyMs, wanted]);
  return now;
}

/** A debounced value: the last one that did not change for a while. */
export function useSettled<T>(value: T, ms: number): T {
  const [settled, set] = useState(value);
  useEffect(() => {
    const t = setTimeout(() => set(value), ms);
    return () => clearTimeout(t);
  }, [value, ms]);
  return settled;
}

/** A throttled value: it changes at once, then at most once per interval, and ends up current. */
export function useThrottled<T>(value: T, ms: number): T {
  const [throttled, set] = useState(value);
  const newest = useRef(value);
  const shown = useRef(value);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    newest.current = value;
    const update = () => {
      timer.current = undefined;
      if (Object.is(newest.current, shown.current)) return;
      shown.current = newest.current;
      set(newest.current);
      timer.current = setTimeout(update, ms);
    };
    if (timer.current === undefined) update();
  }, [value, ms]);
  useEffect(
    () => () => {
      clearTimeout(timer.current);
      timer.current = undefined;
    },
    [],
  );
  return throttled;
}
