import { getRouteApi, Link } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState } from "react";
import { day, plural } from "@/components/format";
import { SearchHits } from "@/components/search-hits";
import { SessionFilters } from "@/components/session-filters";
import { SessionRow } from "@/components/session-row";
import { Button, ErrorBox, Loading, Notice } from "@/components/ui";
import { useKeys } from "@/hooks/keys";
import { asTree, useSessions } from "@/hooks/sessions";

const route = getRouteApi("/");
const rowHeight = 52;
const headingHeight = 38;

/** Twice is the browser's own. */
const toSearch = () => {
  const field = document.getElementById("search");
  if (field === document.activeElement) return false;
  field?.focus();
};

export function SessionsPage() {
  const filter = route.useSearch();
  const navigate = route.useNavigate();
  const list = useSessions(filter);
  const rows = useMemo(() => asTree(list.rows, day), [list.rows]);
  const [selected, select] = useState(-1);
  const [marked, setMarked] = useState<string[]>([]);
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: (i) => rowHeight + (rows[i]?.heading ? headingHeight : 0),
    getItemKey: (i) => rows[i]?.session.id ?? i,
    overscan: 6,
  });
  const items = virtual.getVirtualItems();
  const lastShown = items.at(-1)?.index ?? 0;
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = list;

  useEffect(() => {
    document.title = "Sessions · Tapedeck";
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: heights follow from the rows
  useEffect(() => virtual.measure(), [rows]);
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage && lastShown > rows.length - 20) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage, lastShown, rows.length]);

  const move = (by: number) => {
    const to = Math.max(0, Math.min(rows.length - 1, selected + by));
    select(to);
    virtual.scrollToIndex(to);
  };
  const mark = (id: string) => setMarked((m) => (m.includes(id) ? m.filter((x) => x !== id) : [...m, id].slice(-2)));
  const compare = () => {
    const [a, b] = marked;
    if (a && b) void navigate({ to: "/compare", search: { a, b } });
  };
  const at = rows[selected]?.session.id;
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    Enter: () => at !== undefined && navigate({ to: "/s/$id", params: { id: at } }),
    x: () => at !== undefined && mark(at),
    c: compare,
    "/": toSearch,
    "Ctrl+f": toSearch,
  });

  const filtered = Object.values(filter).some(Boolean);
  return (
    <div className="flex h-full flex-col">
      <SessionFilters filter={filter} onChange={(f) => navigate({ search: f, replace: true })} />
      <div className="flex min-h-8 items-center gap-3 px-4 text-[13px] text-muted" role="status">
        {list.isSuccess && rows.length > 0 && (
          <>
            <h1 className="sr-only">Sessions</h1>
            <span>
              {plural(rows.length, "session")}
              {hasNextPage ? " so far" : ""}
            </span>
            <Running n={rows.filter((r) => r.session.status === "running").length} />
          </>
        )}
        {list.lost && <span className="text-warn">The server does not answer; trying again</span>}
        {marked.length > 0 && (
          <span className="ml-auto flex items-center gap-2">
            {marked.length === 1 ? "Mark one more to compare" : "Two sessions are marked"}
            <Button onClick={compare} disabled={marked.length < 2}>
              Compare
            </Button>
            <Button look="ghost" onClick={() => setMarked([])}>
              Unmark
            </Button>
          </span>
        )}
      </div>
      <section
        ref={scroller}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        tabIndex={0}
        aria-label="List of sessions"
        className="min-h-0 flex-1 overflow-y-auto [overflow-anchor:none]"
      >
        {list.isPending && <Loading what="the sessions" />}
        {list.isError && (
          <div className="mx-auto max-w-2xl p-8">
            <ErrorBox error={list.error} onRetry={() => void list.refetch()} />
          </div>
        )}
        {list.isSuccess && rows.length === 0 && <Empty filtered={filtered} />}
        <ul className="relative" style={{ height: virtual.getTotalSize() }}>
          {items.map((v) => {
            const row = rows[v.index];
            if (!row) return null;
            return (
              <li
                key={v.key}
                className="absolute inset-x-0 px-4"
                style={{ height: v.size, transform: `translateY(${v.start}px)` }}
              >
                {row.heading && (
                  <h2 className="flex h-[38px] items-end pb-1.5 text-xs font-semibold text-muted">{row.heading}</h2>
                )}
                <SessionRow
                  row={row}
                  selected={v.index === selected}
                  marked={marked.includes(row.session.id)}
                  onMark={() => mark(row.session.id)}
                  still={!virtual.isScrolling}
                />
              </li>
            );
          })}
        </ul>
        {filter.q && <SearchHits q={filter.q} />}
        {isFetchingNextPage && <Loading what="more" />}
      </section>
    </div>
  );
}

function Running({ n }: { n: number }) {
  return n > 0 ? <span className="text-run">● {n} running</span> : null;
}

function Empty({ filtered }: { filtered: boolean }) {
  if (filtered)
    return (
      <Notice title="No session has this title or fits this filter">
        <Link to="/" className="text-accent underline">
          Show all sessions
        </Link>
      </Notice>
    );
  return (
    <Notice title="There is no session yet">
      <p>Give an agent a task, and it is here:</p>
      <pre className="mt-3 rounded-md border border-line bg-panel px-3 py-2 text-left font-mono text-[13px] text-text">
        tapedeck run "Say hello"
      </pre>
      <p className="mt-3">
        Or start the server with <code className="font-mono">--demo</code> to have some to look at, or{" "}
        <Link to="/import" className="text-accent underline">
          import a file
        </Link>
        .
      </p>
    </Notice>
  );
}
