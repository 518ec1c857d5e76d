import { type Place, place, type StreamKind } from "./places.ts";

/** What following needs from its surroundings; tests pass their own. */
export interface Environment {
  setTimeout: (f: () => void, ms: number) => unknown;
  clearTimeout: (timer: unknown) => void;
  /** Milliseconds, of any origin. */
  now: () => number;
  /** From 0 to 1, without 1. */
  random: () => number;
  /** Calls f when the device may be back: it is online again, or the page is visible again. Returns how to stop that. */
  onWake: (f: () => void) => () => void;
  /** Asks for a place for a stream at an address, see places.ts; undefined: it may not stay open. */
  place: (address: string, kind: StreamKind, onAsked: () => void) => Promise<Place | undefined>;
}

export const surroundings: Environment = {
  setTimeout: (f, ms) => setTimeout(f, ms),
  clearTimeout: (timer) => clearTimeout(timer as number),
  now: () => Date.now(), // a monotonic clock stands still while a computer sleeps
  random: () => Math.random(),
  onWake,
  place,
};

/** Node and edge runtimes have neither event: there the timers alone decide. */
function onWake(f: () => void): () => void {
  const page = globalThis.document;
  const whenVisible = () => page.visibilityState === "visible" && f();
  globalThis.addEventListener?.("online", f);
  page?.addEventListener("visibilitychange", whenVisible);
  return () => {
    globalThis.removeEventListener?.("online", f);
    page?.removeEventListener("visibilitychange", whenVisible);
  };
}
