import { useEffect, useRef } from "react";
import { remembered } from "./remembered";

/**
 * Handlers by `event.key`, with the prefixes "Ctrl+" (also for Command) and "Alt+".
 * Letters are case-sensitive; named keys such as arrows may have "Shift+". A handler
 * that returns false leaves the key to the browser.
 */
export type Keys = Record<string, (e?: KeyboardEvent) => unknown>;

const off = "tapedeck.keys.off";

/** Whether single-key shortcuts are on. Some assistive tools need them off. */
export function keysAreOn(): boolean {
  return remembered.get(off) === null;
}

export function switchKeys(on: boolean): void {
  if (on) remembered.remove(off);
  else remembered.set(off, "1");
}

/** The handlers of the current page, in the order in which they are called. */
const activeKeys = new Set<{ current: Keys }>();

/** Whether a key has a handler on this page. */
export function hasKey(name: string): boolean {
  return [...activeKeys].some((keys) => name in keys.current);
}

/** Runs the handler of a key. */
export function press(name: string): void {
  for (const keys of activeKeys) {
    const act = keys.current[name];
    if (act && act() !== false) return;
  }
}

/** Adds shortcuts that work with any focus, but not while the user types or a dialog is open. */
export function useKeys(keys: Keys): void {
  const latest = useRef(keys);
  useEffect(() => {
    latest.current = keys;
  });
  useEffect(() => {
    const onKey = (e: KeyboardEvent) => {
      if (e.defaultPrevented || isTaken(e)) return;
      const act = latest.current[shortcutOf(e)];
      if (act && act(e) !== false) e.preventDefault();
    };
    activeKeys.add(latest);
    document.addEventListener("keydown", onKey);
    return () => {
      activeKeys.delete(latest);
      document.removeEventListener("keydown", onKey);
    };
  }, []);
}

function shortcutOf(e: KeyboardEvent): string {
  const shift = e.shiftKey && e.key.length > 1 ? "Shift+" : "";
  const ctrl = isChord(e) ? "Ctrl+" : "";
  return ctrl + (e.altKey ? "Alt+" : "") + shift + (ctrl ? e.key.toLowerCase() : e.key);
}

/** Whether Ctrl or Command is held. AltGr is not: it types characters. */
function isChord(e: KeyboardEvent): boolean {
  return (e.ctrlKey || e.metaKey) && !e.getModifierState?.("AltGraph");
}

/** Whether the focused element uses the key itself. */
function isTaken(e: KeyboardEvent): boolean {
  if (document.querySelector("dialog[open]")) return true;
  if (isChord(e) || e.key === "F3") return false;
  if (!keysAreOn()) return true;
  const at = e.target as HTMLElement;
  if (at.isContentEditable || at.closest("input:not([type=checkbox]), textarea, select")) return e.key !== "Escape";
  if (at.closest("[role=menu], [role=tree]") && /^(Arrow|Home|End|Enter| )/.test(e.key)) return true;
  return (
    at.closest("button, a, summary, input") !== null &&
    (e.key === "Enter" || e.key === " ") &&
    !at.hasAttribute("data-keys-pass")
  );
}
