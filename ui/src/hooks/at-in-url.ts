import { useEffect, useRef } from "react";
import type { Deck, DeckState } from "@/data/deck";
import type { SessionSearch } from "@/router/search";

/** Whether the browser is at the page of a session, and not on its way to another one. */
export function isAddressOf(id: string, path = location.pathname): boolean {
  const [, page, name] = path.split("/");
  return page === "s" && decodeURIComponent(name ?? "") === id;
}

/**
 * The URL says where the playhead is, and the other way round. While it plays
 * the URL stays as it is; where it stops can be shared.
 */
export function useAtInUrl(
  deck: Deck,
  { live, playing, at }: DeckState,
  asked: number | undefined,
  set: (s: Partial<SessionSearch>) => void,
): void {
  const told = useRef(asked);
  useEffect(() => {
    if (asked === told.current) return;
    told.current = asked; // a link, or the browser's way back
    if (asked === undefined) deck.goLive();
    else deck.seek(asked);
  }, [asked, deck]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: live, the offset is not in the URL
  useEffect(() => {
    if (playing) return;
    const t = setTimeout(() => {
      told.current = live ? undefined : at;
      set({ at: told.current });
    }, 250);
    return () => clearTimeout(t);
  }, [live, playing, live ? 0 : at, set]);
}
