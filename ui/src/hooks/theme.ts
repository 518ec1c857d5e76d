import { useSyncExternalStore } from "react";
import { remembered } from "./remembered";

/** Storage key of the chosen theme. Without a choice, the system theme applies. */
const key = "tapedeck.theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

export type Theme = "light" | "dark";

function current(): Theme {
  const chosen = remembered.get(key);
  if (chosen === "light" || chosen === "dark") return chosen;
  return system.matches ? "dark" : "light";
}

/** Applies the theme to the page. Call it before the first render. */
export function applyTheme(): void {
  document.documentElement.dataset.theme = current();
  for (const l of listeners) l();
}

export function toggleTheme(): void {
  remembered.set(key, current() === "dark" ? "light" : "dark");
  applyTheme();
}

system.addEventListener("change", applyTheme);

export function useTheme(): Theme {
  return useSyncExternalStore((l) => {
    listeners.add(l);
    return () => listeners.delete(l);
  }, current);
}
