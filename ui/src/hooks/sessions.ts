import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { api } from "@/data/api";
import type { SessionEntry } from "@/fold/types";
import type { ListSearch } from "@/router/search";

/** How often the first page is asked for again, so that rows live. */
const refreshMs = 3_000;

/**
 * The sessions that fit a filter, newest first, page by page. What is new on
 * the first page goes before what was loaded.
 */
export function useSessions(filter: ListSearch) {
  const pages = useInfiniteQuery({
    queryKey: ["sessions", filter],
    queryFn: ({ pageParam, signal }) => api.sessions({ ...filter, cursor: pageParam, limit: 100 }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const fresh = useQuery({
    queryKey: ["sessions-fresh", filter],
    queryFn: ({ signal }) => api.sessions({ ...filter, limit: 100 }, { signal }),
    refetchInterval: refreshMs,
    enabled: pages.isSuccess,
  });
  const rows = useMemo(
    () => join(fresh.data, pages.data?.pages.flatMap((p) => p.sessions) ?? []),
    [fresh.data, pages.data],
  );
  return { ...pages, rows, lost: pages.isSuccess && fresh.isError ? fresh.error : null };
}

/**
 * The fresh page before what was loaded. What was loaded before the last of
 * those that are in both, and is not on the fresh page, was deleted or fits no
 * more. The server's order counts and not the times: of what was imported they
 * are long ago.
 */
export function join(fresh: { sessions: SessionEntry[] } | undefined, loaded: SessionEntry[]): SessionEntry[] {
  if (!fresh) return loaded;
  const have = new Set(fresh.sessions.map((s) => s.id));
  const last = loaded.findLastIndex((s) => have.has(s.id));
  return [...fresh.sessions, ...loaded.slice(last + 1)];
}

export interface Row {
  session: SessionEntry;
  /** How many sessions above it are its ancestors. */
  depth: number;
  /** The day, before the first session of it. */
  heading?: string;
}

/** Puts forks under the session that they leave, if that is in the list. */
export function asTree(sessions: SessionEntry[], dayOf: (at: string) => string): Row[] {
  const ids = new Set(sessions.map((s) => s.id));
  const forks = new Map<string, SessionEntry[]>();
  const tops: SessionEntry[] = [];
  for (const s of sessions) {
    if (s.parent && !s.copy && s.parent !== s.id && ids.has(s.parent)) {
      const list = forks.get(s.parent);
      if (list) list.push(s);
      else forks.set(s.parent, [s]);
    } else tops.push(s);
  }
  const rows: Row[] = [];
  const add = (session: SessionEntry, depth: number, heading?: string) => {
    rows.push({ session, depth, heading });
    for (const f of forks.get(session.id) ?? []) add(f, depth + 1);
  };
  let last = "";
  for (const s of tops) {
    const d = dayOf(s.created_at);
    add(s, 0, d === last ? undefined : d);
    last = d;
  }
  return rows;
}
