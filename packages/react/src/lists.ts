import type { Branches, CallOptions, SessionRow, SessionsQuery } from "@tapedeck/client";
import { useCallback, useEffect, useRef, useState } from "react";
import { useClient } from "./provider.ts";

export interface Loaded<T> {
  data: T | undefined;
  error: unknown;
  loading: boolean;
  /** Loads again now. */
  refresh: () => void;
}

/** Loads when `key` changes, and again every `everyMs` while the page is visible; 0 for never. */
function useLoaded<T>(key: string, load: (o: CallOptions) => Promise<T>, everyMs: number): Loaded<T> {
  const [state, set] = useState<{ key: string; data?: T; error?: unknown }>({ key });
  const [asked, ask] = useState(0);
  const latest = useRef(load);
  useEffect(() => {
    latest.current = load;
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: asked: load again
  useEffect(() => {
    const abort = new AbortController();
    const run = () =>
      latest.current({ signal: abort.signal }).then(
        (data) => abort.signal.aborted || set({ key, data }),
        (error) => abort.signal.aborted || set((s) => ({ ...(s.key === key ? s : { key }), error })),
      );
    void run();
    const again = () => globalThis.document?.hidden || void run();
    const timer = everyMs > 0 ? setInterval(again, everyMs) : undefined;
    return () => {
      abort.abort();
      clearInterval(timer);
    };
  }, [key, asked, everyMs]);
  const refresh = useCallback(() => ask((n) => n + 1), []);
  const now = state.key === key ? state : { data: undefined, error: undefined };
  return { data: now.data, error: now.error, loading: now.data === undefined && now.error === undefined, refresh };
}

export interface RefreshOptions {
  /** How often the list is loaded again; 15 s without it, 0 for never. */
  refreshMs?: number;
}

export interface UseSessions extends Omit<Loaded<unknown>, "data"> {
  sessions: SessionRow[];
  /** Loads the next page; undefined if there is none. */
  more: (() => void) | undefined;
}

/** The sessions that match, newest first, page by page. */
export function useSessions(q: SessionsQuery = {}, { refreshMs = 15_000 }: RefreshOptions = {}): UseSessions {
  const { api } = useClient();
  const asked = JSON.stringify(q);
  const [wanted, want] = useState({ asked, pages: 1 });
  const pages = wanted.asked === asked ? wanted.pages : 1;
  const load = async (o: CallOptions) => {
    const sessions: SessionRow[] = [];
    let { cursor } = q;
    for (let n = 0; n < pages; n++) {
      const page = await api.sessions({ ...q, cursor }, o);
      sessions.push(...page.sessions);
      cursor = page.next;
      if (!cursor) break;
    }
    return { asked, sessions, next: cursor };
  };
  const { data, ...rest } = useLoaded(JSON.stringify([asked, pages]), load, refreshMs);
  const last = useRef(data);
  useEffect(() => {
    if (data) last.current = data;
  }, [data]);
  // While the next page is loaded, the pages before it stay.
  const shown = data ?? (last.current?.asked === asked ? last.current : undefined);
  const more = useCallback(() => want({ asked, pages: pages + 1 }), [asked, pages]);
  return { ...rest, sessions: shown?.sessions ?? none, more: data?.next ? more : undefined };
}

const none: never[] = [];

/** The tree of a session: its forks, and what was rewound. */
export function useBranches(
  id: string,
  { refreshMs = 15_000 }: RefreshOptions = {},
): Omit<Loaded<unknown>, "data"> & { branches: Branches["branches"] } {
  const { api } = useClient();
  const { data, ...rest } = useLoaded(id, (o) => api.branches(id, o), refreshMs);
  return { ...rest, branches: data?.branches ?? none };
}
