import { useQuery } from "@tanstack/react-query";
import { api } from "@/data/api";
import type { ReplayIndex } from "@/fold/types";

/** Forks do not show in the log of the session that they leave, so it is asked for them now and then. */
const everyMs = 15_000;

/** The tree around a session: anew as runs begin, and as something in it is taken back or brought back. */
export function useBranches(id: string, index: ReplayIndex | undefined) {
  const { rewind = 0, clear = 0, overwrite = 0 } = index?.marked ?? {};
  return useQuery({
    queryKey: ["branches", id, index?.runs, rewind + clear + overwrite],
    queryFn: ({ signal }) => api.branches(id, { signal }),
    enabled: index !== undefined,
    placeholderData: (old) => old,
    refetchInterval: everyMs,
  });
}
