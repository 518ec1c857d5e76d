import { useSyncExternalStore } from "react";
import { remembered } from "./remembered";

/** Storage key of the chosen theme. Without a choice, the system theme applies. */
const key = "tapedeck.theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

export type Theme = "light" | "dark";

/** The theme that a recording asks for, until the reader chooses. It is not remembered. */
let asked: Theme | undefined;

function current(): Theme {
  const chosen = asked ?? remembered.get(key);
  if (chosen === "light" || chosen === "dark") return chosen;
  return system.matches ? "dark" : "light";
}

/** Applies the theme to the page: that of a recording, or that of the reader. Call it before the first render. */
export function applyTheme(of?: Theme): void {
  asked = of ?? asked;
  document.documentElement.dataset.theme = current();
  for (const l of listeners) l();
}

export function toggleTheme(): void {
  const next = current() === "dark" ? "light" : "dark";
  if (asked) asked = next;
  else remembered.set(key, next);
  if (remembered.get(key) !== next) asked = next; // without storage, as in a frame of another site
  applyTheme();
}

system.addEventListener("change", () => applyTheme());

export function useTheme(): Theme {
  return useSyncExternalStore((l) => {
    listeners.add(l);
    return () => listeners.delete(l);
  }, current);
}
