import { useEffect, useRef } from "react";
import { remembered } from "./remembered";

/**
 * What keys do, by `event.key`, with "Ctrl+" (or Command) and "Alt+" before it
 * if they are held; letters tell upper from lower case, arrows and the like may
 * have "Shift+". A handler that returns false leaves the key to the browser.
 */
export type Keys = Record<string, (e?: KeyboardEvent) => unknown>;

const off = "tapedeck.keys.off";

/** Whether single keys are shortcuts; some people need them not to be. */
export function keysAreOn(): boolean {
  return remembered.get(off) === null;
}

export function switchKeys(on: boolean): void {
  if (on) remembered.remove(off);
  else remembered.set(off, "1");
}

/** What the page that is open does, in the order in which it is asked. */
const heard = new Set<{ current: Keys }>();

/** Whether a key does something here. */
export function hasKey(name: string): boolean {
  return [...heard].some((keys) => name in keys.current);
}

/** Does what a key does, without the key. */
export function press(name: string): void {
  for (const keys of heard) {
    const act = keys.current[name];
    if (act && act() !== false) return;
  }
}

/** Keys work wherever the focus is, but not while somebody types or a dialog is open. */
export function useKeys(keys: Keys): void {
  const latest = useRef(keys);
  useEffect(() => {
    latest.current = keys;
  });
  useEffect(() => {
    const onKey = (e: KeyboardEvent) => {
      if (e.defaultPrevented || isTaken(e)) return;
      const act = latest.current[nameOf(e)];
      if (act && act(e) !== false) e.preventDefault();
    };
    heard.add(latest);
    document.addEventListener("keydown", onKey);
    return () => {
      heard.delete(latest);
      document.removeEventListener("keydown", onKey);
    };
  }, []);
}

function nameOf(e: KeyboardEvent): string {
  const shift = e.shiftKey && e.key.length > 1 ? "Shift+" : "";
  const ctrl = isChord(e) ? "Ctrl+" : "";
  return ctrl + (e.altKey ? "Alt+" : "") + shift + (ctrl ? e.key.toLowerCase() : e.key);
}

/** With Ctrl or Command nobody types, and no single key is meant. */
function isChord(e: KeyboardEvent): boolean {
  return (e.ctrlKey || e.metaKey) && !e.getModifierState?.("AltGraph");
}

/** Whether the key is for the element that has the focus. */
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
