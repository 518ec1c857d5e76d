import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import type { SessionEntry, SessionsQuery } from "@tapedeck/client";
import { useMemo } from "react";
import { api } from "@/client";
import type { ListSearch } from "@/router/search";
import { useDeleting } from "./deleting";
import { archived, starred, tagLabel } from "./labels";

/** How often the first page is requested again, to keep the rows up to date. */
const refreshMs = 3_000;

/**
 * The sessions that match a filter, newest first, page by page. New sessions of the
 * first page are put before the loaded ones. With summaries, each has the times of its
 * conversation.
 */
export function useSessions(search: ListSearch, withSummary = false) {
  const summary = withSummary || undefined;
  const filter = useMemo(() => queryOf(search), [search]);
  const pages = useInfiniteQuery({
    queryKey: ["sessions", filter, withSummary],
    queryFn: ({ pageParam, signal }) => api.sessions({ ...filter, summary, cursor: pageParam, limit: 100 }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const fresh = useQuery({
    queryKey: ["sessions-fresh", filter, withSummary],
    queryFn: ({ signal }) => api.sessions({ ...filter, summary, limit: 100 }, { signal }),
    refetchInterval: refreshMs,
    enabled: pages.isSuccess,
  });
  const deleting = useDeleting();
  const rows = useMemo(
    () => join(fresh.data, pages.data?.pages.flatMap((p) => p.sessions) ?? []).filter((s) => !deleting.has(s.id)),
    [fresh.data, pages.data, deleting],
  );
  return { ...pages, rows, lost: pages.isSuccess && fresh.isError ? fresh.error : null };
}

/** The request for a filter. Archived sessions are listed only if the filter asks for them. */
export function queryOf({ show, tag, ...filter }: ListSearch): SessionsQuery {
  const labels = {
    starred: { label: `${starred}:true`, without_label: archived },
    archived: { label: `${archived}:true` },
  };
  if (show) return { ...filter, ...labels[show] };
  return { ...filter, ...(tag ? { label: `${tagLabel(tag)}:true` } : {}), without_label: archived };
}

/**
 * Puts the fresh first page before the loaded sessions. A loaded session that lies
 * before the last common one, but is not on the fresh page, was deleted or no longer
 * matches. It uses the server's order, not times: imported sessions have old times.
 */
export function join(fresh: { sessions: SessionEntry[] } | undefined, loaded: SessionEntry[]): SessionEntry[] {
  if (!fresh) return loaded;
  const have = new Set(fresh.sessions.map((s) => s.id));
  const last = loaded.findLastIndex((s) => have.has(s.id));
  return [...fresh.sessions, ...loaded.slice(last + 1)];
}

export interface SessionListRow {
  session: SessionEntry;
  /** The number of its ancestors in the list. */
  depth: number;
  /** The day, for the first session of that day. */
  heading?: string;
}

/** Puts forks under their parent, if the parent is in the list. */
export function asTree(sessions: SessionEntry[], dayOf: (at: string) => string): SessionListRow[] {
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
  const rows: SessionListRow[] = [];
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
