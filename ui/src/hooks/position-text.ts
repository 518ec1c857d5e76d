import type { Deck, DeckState } from "@tapedeck/client/player";
import { useMemo } from "react";
import { clock } from "@/components/format";

/** The position of an event in the recording as text; "" if it has none. */
export type PositionText = (e: { offset: number; timestamp: string; channel?: string }, tenths?: boolean) => string;

/** A function that stays the same while the positions do, so that rows are not drawn again. */
export function usePositionText(deck: Deck, { axis, index }: DeckState): PositionText {
  const known = index !== undefined;
  // biome-ignore lint/correctness/useExhaustiveDependencies: with the index, the deck knows the positions
  return useMemo(
    () =>
      ({ channel = "chunks", ...e }, tenths) => {
        const ms = axis === "time" ? deck.positionOf({ ...e, channel }) : undefined;
        return ms === undefined ? "" : clock(ms, tenths);
      },
    [deck, axis, known],
  );
}
