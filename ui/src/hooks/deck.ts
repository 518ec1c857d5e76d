import { useEffect, useMemo, useSyncExternalStore } from "react";
import { Deck, type DeckOptions, type DeckState } from "@/data/deck";

/** The player of a session, as long as the page is there. It begins at an offset, or live. */
export function useDeck(id: string, at?: number, options?: DeckOptions): [Deck, DeckState] {
  // biome-ignore lint/correctness/useExhaustiveDependencies: as it begins only
  const deck = useMemo(() => new Deck(id, at, options), [id]);
  useEffect(() => {
    deck.open();
    return () => deck.close();
  }, [deck]);
  return [deck, useSyncExternalStore(deck.subscribe, deck.get)];
}
