import { useEffect, useRef } from "react";
import { remembered } from "./remembered";

/**
 * What keys do, by `event.key`, with "Alt+" before it if Alt is held; letters
 * tell upper from lower case, arrows and the like may have "Shift+". A handler
 * that returns false leaves the key to the browser.
 */
export type Keys = Record<string, (e: KeyboardEvent) => unknown>;

const off = "tapedeck.keys.off";

/** Whether single keys are shortcuts; some people need them not to be. */
export function keysAreOn(): boolean {
  return remembered.get(off) === null;
}

export function switchKeys(on: boolean): void {
  if (on) remembered.remove(off);
  else remembered.set(off, "1");
}

/** Keys work wherever the focus is, but not while somebody types or a dialog is open. */
export function useKeys(keys: Keys): void {
  const latest = useRef(keys);
  useEffect(() => {
    latest.current = keys;
  });
  useEffect(() => {
    const onKey = (e: KeyboardEvent) => {
      if (e.defaultPrevented || e.ctrlKey || e.metaKey || !keysAreOn() || isTaken(e)) return;
      const act = latest.current[nameOf(e)];
      if (act && act(e) !== false) e.preventDefault();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
}

function nameOf(e: KeyboardEvent): string {
  const shift = e.shiftKey && e.key.length > 1 ? "Shift+" : "";
  return (e.altKey ? "Alt+" : "") + shift + e.key;
}

/** Whether the key is for the element that has the focus. */
function isTaken(e: KeyboardEvent): boolean {
  const at = e.target as HTMLElement;
  if (document.querySelector("dialog[open]")) return true;
  if (at.isContentEditable || at.closest("input:not([type=checkbox]), textarea, select")) return e.key !== "Escape";
  if (at.closest("[role=menu], [role=tree]") && /^(Arrow|Home|End|Enter| )/.test(e.key)) return true;
  return (
    at.closest("button, a, summary, input") !== null &&
    (e.key === "Enter" || e.key === " ") &&
    !at.hasAttribute("data-keys-pass")
  );
}
