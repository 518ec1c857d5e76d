import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { hasOpenRun, type SearchHit, type SessionRow, type SessionSort, type SessionsQuery } from "@tapedeck/client";
import { useEffect, useMemo, useState } from "react";
import { api } from "@/client";
import type { ListSearch } from "@/router/search";
import { useUndeleted } from "./deleting";
import { archived, starred, tagLabel } from "./labels";

/** How often the first page is requested again, to keep the rows up to date. */
const refreshMs = 3_000;

/** A session in the list. */
export type Listed = SessionRow;

/** When a session was last active: its conversation, or its creation. */
export const lastActive = (s: Listed): string => s.summary?.updated_at ?? s.created_at;

/** The order of a list. */
export interface InOrder {
  sort: SessionSort;
  order: "asc" | "desc";
}

/**
 * The sessions that match a filter in an order, page by page, with their summaries. The
 * first page is requested again and again; what is new there is put before the rest.
 */
export function useSessions(search: ListSearch, { sort, order }: InOrder) {
  const query = { ...queryOf(search), sort, order, summary: true, limit: 100 };
  const key = JSON.stringify(query);
  const pages = useInfiniteQuery({
    queryKey: ["sessions", query],
    queryFn: ({ pageParam, signal }) => api.sessions({ ...query, cursor: pageParam }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const [dueFor, setDueFor] = useState<string>(); // at first, the page itself is new enough
  const due = dueFor === key;
  useEffect(() => {
    if (!pages.isSuccess || due) return;
    const t = setTimeout(() => setDueFor(key), refreshMs);
    return () => clearTimeout(t);
  }, [pages.isSuccess, due, key]);
  const fresh = useQuery({
    queryKey: ["sessions-fresh", query],
    queryFn: ({ signal }) => api.sessions(query, { signal }),
    refetchInterval: refreshMs,
    enabled: pages.isSuccess && due,
  });
  const all = useMemo(
    () => join(fresh.data, pages.data?.pages.flatMap((p) => p.sessions) ?? []),
    [fresh.data, pages.data],
  );
  const rows = useUndeleted(all);
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
 * Puts the fresh first page before the loaded sessions. What was loaded after the last
 * session of the fresh page stays. What was before it and is not on the page has moved
 * there, was deleted, or no longer matches.
 */
export function join<T extends { id: string }>(fresh: { sessions: T[]; next?: string } | undefined, loaded: T[]): T[] {
  if (!fresh) return unique(loaded);
  if (fresh.next === undefined) return fresh.sessions;
  let cut = -1;
  for (const s of fresh.sessions.toReversed()) {
    cut = loaded.findIndex((l) => l.id === s.id);
    if (cut >= 0) break;
  }
  return unique([...fresh.sessions, ...loaded.slice(cut + 1)]);
}

/** A session whose place changes while pages are loaded may be on two of them. */
function unique<T extends { id: string }>(all: T[]): T[] {
  const seen = new Set<string>();
  return all.filter((s) => !seen.has(s.id) && seen.add(s.id));
}

export interface SessionListRow {
  session: Listed;
  /** The number of its ancestors above it, if forks are put under their parents. */
  depth: number;
  /** What this session and those below it have in common, for the first of them. */
  heading?: string;
  /** Where the searched text is in it. */
  hits?: SearchHit[];
}

/**
 * The rows of a list in an order. By activity, live sessions have headings of their own, and
 * the others the day; by creation, forks are under their parents.
 */
export function asRows(
  sessions: Listed[],
  { sort, order }: InOrder,
  hits: Map<string, SearchHit[]>,
  dayOf: (at: string) => string,
): SessionListRow[] {
  const rows =
    sort === "created" && order === "desc"
      ? asTree(sessions, dayOf)
      : sessions.map((session) => ({ session, depth: 0 }));
  if (sort === "activity") {
    let last = "";
    for (const row of rows as SessionListRow[]) {
      const heading = groupOf(row.session, dayOf);
      if (heading !== last) row.heading = heading;
      last = heading;
    }
  }
  return rows.map((row) => ({ ...row, hits: hits.get(row.session.id) }));
}

function groupOf(s: Listed, dayOf: (at: string) => string): string {
  if (s.status === "waiting") return "Waiting for you";
  return hasOpenRun(s.status) ? "Running" : dayOf(lastActive(s));
}

/** The hits by session, each in the order of the server. */
export function hitsBySession(hits: SearchHit[]): Map<string, SearchHit[]> {
  const by = new Map<string, SearchHit[]>();
  for (const h of hits) {
    if (h.kind === "title") continue; // the row shows it
    const list = by.get(h.session);
    if (list) list.push(h);
    else by.set(h.session, [h]);
  }
  return by;
}

/** The places in conversations in which a text is. */
export function useHits(q: string | undefined) {
  const found = useQuery({
    queryKey: ["search", q],
    queryFn: ({ signal }) => api.search({ q: q ?? "", limit: 100 }, { signal }),
    enabled: Boolean(q),
    retry: false,
  });
  const hits = q ? found.data?.hits : undefined;
  return { by: useMemo(() => hitsBySession(hits ?? []), [hits]), error: q ? found.error : null };
}

/** Puts forks under their parent, if the parent is in the list. */
export function asTree(sessions: Listed[], dayOf: (at: string) => string): SessionListRow[] {
  const ids = new Set(sessions.map((s) => s.id));
  const forks = new Map<string, Listed[]>();
  const tops: Listed[] = [];
  for (const s of sessions) {
    if (s.parent && !s.copy && s.parent !== s.id && ids.has(s.parent)) {
      const list = forks.get(s.parent);
      if (list) list.push(s);
      else forks.set(s.parent, [s]);
    } else tops.push(s);
  }
  const rows: SessionListRow[] = [];
  const add = (session: Listed, depth: number, heading?: string) => {
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
