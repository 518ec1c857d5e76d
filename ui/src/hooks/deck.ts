import { Deck, type DeckOptions, type DeckState } from "@tapedeck/client/player";
import { useEffect, useMemo, useSyncExternalStore } from "react";
import { liveDeck } from "@/live";

/** The player of a session, while the page is open. It starts at an offset, or live. */
export function useDeck(id: string, at?: number, options: DeckOptions = liveDeck): [Deck, DeckState] {
  // biome-ignore lint/correctness/useExhaustiveDependencies: at and options are initial values
  const deck = useMemo(() => new Deck(id, at, options), [id]);
  useEffect(() => {
    deck.open();
    return () => deck.close();
  }, [deck]);
  return [deck, useSyncExternalStore(deck.subscribe, deck.get)];
}
