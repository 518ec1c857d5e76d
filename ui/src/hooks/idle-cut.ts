import type { ReplayIndex } from "@tapedeck/client";
import { useState } from "react";
import { idleShare } from "@/components/transport/axis";
import { useKeys } from "./keys";

/** Whether the bar shortens idle times, with its shortcut. By default it does if more than half of the time is idle. */
export function useIdleCut(index: ReplayIndex | undefined): [cut: boolean, set: (cut: boolean) => void] {
  const [chosen, set] = useState<boolean>();
  const cut = chosen ?? idleShare(index) > 0.5;
  useKeys({ a: () => set(!cut) });
  return [cut, set];
}
