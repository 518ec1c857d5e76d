import { useQueries } from "@tanstack/react-query";
import { hasOpenRun, type ReplayIndex, type SessionEntry } from "@tapedeck/client";
import { useMemo } from "react";
import { api } from "@/client";

/** The limit of sessions whose replay index is loaded, for their errors. */
const maxIndexes = 30;

/** The replay indexes of some sessions, as they arrive. The list uses the same queries. */
export function useIndexes(sessions: SessionEntry[]): ReadonlyMap<string, ReplayIndex> {
  const some = sessions.slice(-maxIndexes);
  const found = useQueries({
    queries: some.map((s) => {
      const live = hasOpenRun(s.status);
      return {
        queryKey: ["spark", s.id, live],
        queryFn: ({ signal }: { signal: AbortSignal }) => api.replayIndex(s.id, { signal }),
        staleTime: live ? 10_000 : Number.POSITIVE_INFINITY,
        retry: false,
      };
    }),
  });
  const key = found.map((f, i) => `${some[i]?.id} ${f.dataUpdatedAt}`).join();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the results are new objects each time
  return useMemo(() => {
    const out = new Map<string, ReplayIndex>();
    found.forEach((f, i) => {
      const id = some[i]?.id;
      if (id && f.data) out.set(id, f.data);
    });
    return out;
  }, [key]);
}
