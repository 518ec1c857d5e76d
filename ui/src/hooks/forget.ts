import { TapedeckError } from "@tapedeck/client";
import { useEffect, useRef } from "react";

interface Request {
  error: Error | null;
  reset: () => void;
}

/**
 * Forgets errors of requests that are not true any more: all when `about`, what they were
 * about, changes, and that the server could not be reached when it can be reached again.
 */
export function useForget(all: Request[], about: string | number | undefined, connected?: boolean): void {
  const before = useRef({ about, connected });
  useEffect(() => {
    const changed = before.current.about !== about;
    const back = connected && !before.current.connected;
    before.current = { about, connected };
    for (const m of all)
      if (m.error && (changed || (back && m.error instanceof TapedeckError && m.error.kind === "unreachable")))
        m.reset();
  });
}
