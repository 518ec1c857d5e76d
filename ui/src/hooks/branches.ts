import { useQuery } from "@tanstack/react-query";
import type { ReplayIndex } from "@tapedeck/client";
import { api } from "@/client";

/** A fork adds no event to the log of its parent, so the tree is requested regularly. */
const refreshMs = 15_000;

/** The tree of a session. It is loaded again when a run starts, and after each jump. */
export function useBranches(id: string, index: ReplayIndex | undefined) {
  const { rewind = 0, clear = 0, overwrite = 0 } = index?.marked ?? {};
  return useQuery({
    queryKey: ["branches", id, index?.runs, rewind + clear + overwrite],
    queryFn: ({ signal }) => api.branches(id, { signal }),
    enabled: index !== undefined,
    placeholderData: (old) => old,
    refetchInterval: refreshMs,
  });
}
