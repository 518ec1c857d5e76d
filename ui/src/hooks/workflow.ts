import type { Deck } from "@tapedeck/client/player";
import { WorkflowLog, type WorkflowMoment } from "@tapedeck/client/workflow";
import { useEffect, useMemo, useReducer, useRef, useState } from "react";
import { useSource } from "./source";

/** The workflow of a session at the playhead. While its events are loading, it is the one shown before. */
export function useWorkflow(deck: Deck, at: number) {
  const source = useSource();
  const log = useMemo(
    () => new WorkflowLog({ event: deck.event, fetch: (q) => source.events(deck.id, q) }),
    [deck, source],
  );
  const [error, setError] = useState<unknown>();
  const [tried, again] = useReducer((n: number) => n + 1, 0);
  const last = useRef<WorkflowMoment>(undefined);
  const ready = log.ready(at);
  if (ready) last.current = log.at(at);
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
  return { moment: last.current, error: ready ? undefined : error, retry: again };
}
