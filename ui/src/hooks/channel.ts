import { type ChannelBounds, ChannelLog, type Deck } from "@tapedeck/client/player";
import { useEffect, useMemo, useReducer, useState } from "react";
import { useSource } from "./source";

/** The events of a channel before the playhead. */
export function useChannel(deck: Deck, channel: string, at: number, { maxBytes, lookBack }: ChannelBounds = {}) {
  const source = useSource();
  const log = useMemo(
    () =>
      new ChannelLog(channel, { event: deck.event, fetch: (q) => source.events(deck.id, q) }, { maxBytes, lookBack }),
    [deck, source, channel, maxBytes, lookBack],
  );
  const [error, setError] = useState<unknown>();
  const [tried, again] = useReducer((n: number) => n + 1, 0);
  const ready = log.ready(at);
  // biome-ignore lint/correctness/useExhaustiveDependencies: tried: again after an error, and after each load
  useEffect(() => {
    if (ready) return;
    let cancelled = false;
    log.load(at).then(
      () => {
        if (cancelled) return;
        setError(undefined);
        again();
      },
      (err) => cancelled || setError(err),
    );
    return () => {
      cancelled = true;
    };
  }, [log, at, ready, tried]);
  return { log, ready, error, retry: again };
}
