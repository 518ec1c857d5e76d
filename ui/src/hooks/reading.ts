import { useCallback, useMemo, useState } from "react";
import type { MenuItem } from "@/components/menu";
import { useKeys } from "./keys";
import { remembered } from "./remembered";
import type { Unfolded } from "./unfolded";

const storedDense = "tapedeck-dense";

/** How a conversation is read: what is unfolded, and how much space rows take. The browser remembers the space. */
export function useReading({ which, setAll }: Unfolded): { dense: boolean; items: MenuItem[] } {
  const [dense, setDense] = useState(() => remembered.get(storedDense) === "1");
  const toggle = useCallback(() => {
    remembered.set(storedDense, dense ? "0" : "1");
    setDense(!dense);
  }, [dense]);
  useKeys({
    x: () => setAll(which === "usual" ? "all" : which === "all" ? "none" : "usual"),
    d: toggle,
  });
  const items = useMemo<MenuItem[]>(
    () => [
      { label: "Expand all", checked: which === "all", onChoose: () => setAll("all") },
      { label: "Collapse all", checked: which === "none", onChoose: () => setAll("none") },
      { label: "Expand failed tools and edits", checked: which === "usual", onChoose: () => setAll("usual") },
      { label: "Compact rows", checked: dense, onChoose: toggle },
    ],
    [which, setAll, dense, toggle],
  );
  return { dense, items };
}
