import type { Deck, DeckState } from "@tapedeck/client/player";
import { useEffect, useRef } from "react";
import type { SessionSearch } from "@/router/search";

/** Whether the browser is on the page of a session, and not already navigating to another page. */
export function isAddressOf(id: string, path = location.pathname): boolean {
  const [, page, name] = path.split("/");
  return page === "s" && decodeURIComponent(name ?? "") === id;
}

/**
 * Keeps the playhead and the URL in sync, in both directions. While it plays, the URL
 * does not change. Where it stops, the URL can be shared.
 */
export function useAtInUrl(
  deck: Deck,
  { live, playing, at }: DeckState,
  urlAt: number | undefined,
  set: (s: Partial<SessionSearch>) => void,
): void {
  const inUrl = useRef(urlAt);
  useEffect(() => {
    if (urlAt === inUrl.current) return;
    inUrl.current = urlAt; // a link, or the browser's back button
    if (urlAt === undefined) deck.goLive();
    else deck.seek(urlAt);
  }, [urlAt, deck]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: while live, the URL has no offset
  useEffect(() => {
    if (playing) return;
    const t = setTimeout(() => {
      inUrl.current = live ? undefined : at;
      set({ at: inUrl.current });
    }, 250);
    return () => clearTimeout(t);
  }, [live, playing, live ? 0 : at, set]);
}
