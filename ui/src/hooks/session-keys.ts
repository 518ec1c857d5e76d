import type { Marker } from "@tapedeck/client";
import type { Deck, DeckState } from "@tapedeck/client/player";
import { smallStep } from "@/components/transport/axis";
import { speeds } from "@/components/transport/speed";
import { type Keys, useKeys } from "./keys";

/** The markers that [ and ] go to: no tool calls, plans or instances. */
const notable = (m: Marker) => m.kind !== "tool" && m.kind !== "plan" && m.kind !== "instance";
const isKind = (kind: string) => (m: Marker) => m.kind === kind;

/** The shortcuts for playback. */
export function usePlaybackKeys(deck: Deck, state: DeckState): void {
  const { position, length } = state;
  const by = (n: number) => () => deck.seekPosition(position + n);
  const small = smallStep(state.axis);
  const speed = (n: number) => () => {
    const i = speeds.indexOf(state.speed);
    deck.setSpeed(speeds[Math.max(0, Math.min(speeds.length - 1, i + n))] ?? 1);
  };
  const keys: Keys = {
    " ": deck.toggle,
    ArrowLeft: by(-small),
    ArrowRight: by(small),
    "Shift+ArrowLeft": by(-length / 10),
    "Shift+ArrowRight": by(length / 10),
    ",": () => deck.step(-1, "item"),
    ".": () => deck.step(1, "item"),
    "Alt+,": () => deck.step(-1, "event"),
    "Alt+.": () => deck.step(1, "event"),
    "[": () => deck.toMarker(-1, notable),
    "]": () => deck.toMarker(1, notable),
    t: () => deck.toMarker(1, isKind("tool")),
    T: () => deck.toMarker(-1, isKind("tool")),
    e: () => deck.toMarker(1, isKind("error")),
    E: () => deck.toMarker(-1, isKind("error")),
    u: () => deck.toMarker(1, isKind("user")),
    U: () => deck.toMarker(-1, isKind("user")),
    Home: () => deck.seek(1),
    End: deck.goLive,
    L: deck.goLive,
    "<": speed(-1),
    ">": speed(1),
    "=": () => deck.setSpeed(1),
    i: () => deck.setSkipIdle(!state.skipIdle),
  };
  for (let n = 0; n < 10; n++) keys[String(n)] = () => deck.seekPosition((length * n) / 10);
  useKeys(keys);
}

/** When g was pressed. The frame and the page have shortcuts, and only one of them gets the key. */
let since = Number.NEGATIVE_INFINITY; // not 0: that is a moment in the first 1.5 s of the page

/** Shortcuts of two keys: g, then another key. A place that returns false leaves the key. */
export function useGoKeys(places: Record<string, () => unknown>): void {
  const keys: Keys = {
    g: () => {
      since = performance.now();
    },
  };
  for (const [key, go] of Object.entries(places)) {
    keys[`g ${key}`] = go; // no real key: a name for the palette
    keys[key] = () => {
      if (performance.now() - since > 1500) return false;
      since = Number.NEGATIVE_INFINITY;
      return go();
    };
  }
  useKeys(keys);
}
