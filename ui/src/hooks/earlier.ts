import type { Snapshot } from "@tapedeck/client";
import { useCallback, useState } from "react";
import { api } from "@/client";

type Parts = Pick<Snapshot, "messages" | "tool_calls" | "runs">;
interface Loaded extends Parts {
  before: number; // the first offset after the loaded items
  left: number; // earlier messages that are not loaded yet
}

/** The number of messages in each request. */
const pageSize = 200;

/**
 * The earlier part of a long conversation, which the player does not have, as far as
 * the user has loaded it.
 */
export function useEarlier(id: string, view: Snapshot | undefined, jumps: number) {
  const [loaded, setLoaded] = useState<(Loaded & { jumps: number }) | undefined>();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const first = view ? firstOf(view) : 0;
  // After a seek or a jump, the loaded part does not fit any more.
  const fits =
    loaded && view && loaded.jumps === jumps && loaded.before >= first - 1 && view.at > loaded.before
      ? loaded
      : undefined;
  const left = fits ? fits.left : (view?.earlier ?? 0);
  const load = useCallback(async () => {
    if (!view || busy) return;
    setBusy(true);
    setError(undefined);
    try {
      const before = fits ? firstOf(fits) : first;
      const got = await api.snapshot(id, { at: view.at, before, limit: pageSize });
      setLoaded({
        before: fits?.before ?? before,
        jumps,
        left: got.earlier ?? 0,
        messages: [...got.messages, ...(fits?.messages ?? [])],
        tool_calls: [...got.tool_calls, ...(fits?.tool_calls ?? [])],
        runs: [...got.runs, ...(fits?.runs ?? [])],
      });
    } catch (e) {
      setError(e);
    } finally {
      setBusy(false);
    }
  }, [id, view, busy, fits, first, jumps]);
  return { parts: fits, left, load, busy, error };
}

function firstOf(p: Parts): number {
  return Math.min(
    p.messages[0]?.offset ?? Number.POSITIVE_INFINITY,
    p.tool_calls[0]?.offset ?? Number.POSITIVE_INFINITY,
  );
}

/** Joins both parts. For items in both, the player's version is used. */
export function withEarlier<V extends Parts>(view: V, earlier: Parts | undefined): V {
  if (!earlier) return view;
  const join = <T extends { offset: number }>(a: T[], b: T[]) => {
    const have = new Set(b.map((i) => i.offset));
    return [...a.filter((i) => !have.has(i.offset)), ...b];
  };
  return {
    ...view,
    messages: join(earlier.messages, view.messages),
    tool_calls: join(earlier.tool_calls, view.tool_calls),
    runs: join(earlier.runs, view.runs),
  };
}
