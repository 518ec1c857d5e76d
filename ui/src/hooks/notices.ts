import { useSyncExternalStore } from "react";

/** A message about a completed action, for some seconds. */
export interface Notice {
  text: string;
  bad?: boolean;
  /** A button in the message. */
  action?: { label: string; run: () => void };
}

interface Shown extends Notice {
  id: number;
}

let shown: Shown | undefined;
let ids = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
const listeners = new Set<() => void>();

function set(to?: Shown): void {
  shown = to;
  for (const l of listeners) l();
}

/** Shows a message, instead of the one before. It outlives a change of the page. */
export function announce(notice: Notice, ms = 5000): void {
  clearTimeout(timer);
  set({ ...notice, id: ++ids });
  timer = setTimeout(() => set(), ms);
}

export function dismiss(): void {
  clearTimeout(timer);
  set();
}

function subscribe(l: () => void): () => void {
  listeners.add(l);
  return () => listeners.delete(l);
}

export function useNotice(): Shown | undefined {
  return useSyncExternalStore(subscribe, () => shown);
}
