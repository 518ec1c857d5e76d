import { useQuery } from "@tanstack/react-query";
import { api } from "@/data/api";

/** The tree around a session, anew as the session grows, and when something in it was taken back or brought back. */
export function useBranches(id: string, head: number, jumps = 0) {
  return useQuery({
    queryKey: ["branches", id, Math.floor(head / 50), jumps],
    queryFn: ({ signal }) => api.branches(id, { signal }),
    placeholderData: (old) => old,
  });
}
