import { getRouteApi, Link } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import type { SessionEntry } from "@tapedeck/client";
import { type ReactNode, Suspense, useEffect, useMemo, useRef, useState } from "react";
import { BulkBar } from "@/components/bulk-bar";
import { day, plural } from "@/components/format";
import { lazyPart } from "@/components/lazy-part";
import { useManage } from "@/components/manage";
import type { MenuItem } from "@/components/menu";
import { SearchHits } from "@/components/search-hits";
import { SessionFilters } from "@/components/session-filters";
import { SessionRow } from "@/components/session-row";
import { ErrorBox, Loading, Notice } from "@/components/ui";
import { useKeys } from "@/hooks/keys";
import { asTree, useSessions } from "@/hooks/sessions";
import { useViewer } from "@/hooks/viewer";

const route = getRouteApi("/");
const TimeView = lazyPart(() => import("@/components/time/time-view"));
const rowHeight = 52;
const headingHeight = 38;

/** Focuses the search field. If it has the focus already, the browser handles the key: Ctrl+f opens its own search. */
const toSearch = () => {
  const field = document.getElementById("search");
  if (field === document.activeElement) return false;
  field?.focus();
};

export function SessionsPage() {
  const { view, t0, t1, ...filter } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useSessions(filter, view === "time");
  const { rows } = list;
  const viewer = useViewer();
  const manage = useManage();
  const [marked, setMarked] = useState<string[]>([]);
  const range = t0 === undefined || t1 === undefined ? undefined : { from: t0, to: t1 };

  useEffect(() => {
    document.title = "Sessions · Tapedeck";
  }, []);
  const mark = (id: string) => setMarked((m) => (m.includes(id) ? m.filter((x) => x !== id) : [...m, id]));
  const open = (id: string) => void navigate({ to: "/s/$id", params: { id } });
  const compare = () => {
    const [a, b] = marked;
    if (a && b && marked.length === 2) void navigate({ to: "/compare", search: { a, b } });
  };
  useKeys({ c: compare, "/": toSearch, "Ctrl+f": toSearch });

  const itemsOf = viewer?.role === "reader" ? () => [] : manage.itemsOf;
  const empty = <Empty filtered={Object.values(filter).some(Boolean)} />;
  return (
    <div className="flex h-full flex-col">
      <SessionFilters filter={filter} onChange={(f) => navigate({ search: { ...f, view, t0, t1 }, replace: true })} />
      <div className="flex min-h-10 items-center gap-3 px-4 text-[13px] text-muted">
        <h1 className="sr-only">Sessions</h1>
        <Views
          time={view === "time"}
          onChange={(time) => navigate({ search: { ...filter, view: time ? "time" : undefined } })}
        />
        <div role="status" className="flex items-center gap-3">
          {list.isSuccess && rows.length > 0 && (
            <>
              <span>
                {plural(rows.length, "session")}
                {list.hasNextPage ? " so far" : ""}
              </span>
              <Running n={rows.filter((r) => r.status === "running").length} />
            </>
          )}
          {list.lost && <span className="text-warn">The server does not respond. Trying again…</span>}
        </div>
        {marked.length > 0 && (
          <BulkBar
            marked={rows.filter((s) => marked.includes(s.id))}
            manage={manage}
            onCompare={compare}
            onUnmark={() => setMarked([])}
          />
        )}
        {manage.dialogs}
      </div>
      {list.isPending && <Loading what="the sessions" />}
      {list.isError && (
        <div className="mx-auto max-w-2xl p-8">
          <ErrorBox error={list.error} onRetry={() => void list.refetch()} />
        </div>
      )}
      {list.isSuccess && view !== "time" && (
        <List list={list} q={filter.q} marked={marked} onMark={mark} onOpen={open} empty={empty} itemsOf={itemsOf} />
      )}
      {list.isSuccess && view === "time" && (
        <Suspense fallback={<Loading what="the view" />}>
          <TimeView
            list={list}
            urlRange={range}
            onRange={(r) => navigate({ search: { ...filter, view, t0: r?.from, t1: r?.to }, replace: true })}
            marked={marked}
            onMark={mark}
            onOpen={open}
            empty={empty}
          />
        </Suspense>
      )}
    </div>
  );
}

function Views({ time, onChange }: { time: boolean; onChange: (time: boolean) => void }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for form fields
    <div role="group" aria-label="View" className="flex rounded-md border border-line bg-panel p-0.5">
      {[false, true].map((t) => (
        <button
          key={String(t)}
          type="button"
          aria-pressed={t === time}
          onClick={() => onChange(t)}
          className={`rounded px-2.5 py-0.5 ${t === time ? "bg-raised font-medium text-text" : "hover:text-text"}`}
        >
          {t ? "Time" : "List"}
        </button>
      ))}
    </div>
  );
}

interface ListProps {
  list: ReturnType<typeof useSessions>;
  q?: string;
  marked: string[];
  onMark: (id: string) => void;
  onOpen: (id: string) => void;
  empty: ReactNode;
  itemsOf: (s: SessionEntry) => MenuItem[];
}

function List({ list, q, marked, onMark, onOpen, empty, itemsOf }: ListProps) {
  const rows = useMemo(() => asTree(list.rows, day), [list.rows]);
  const [selected, select] = useState(-1);
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
  // Of all rows only one is in the order of Tab. From there arrow keys go to the others,
  // and along the controls of a row.
  const inOrder = selected >= 0 && selected < rows.length ? selected : (items[0]?.index ?? 0);
  const controls = (index: number) => [
    ...(scroller.current?.querySelectorAll<HTMLElement>(`[data-row="${index}"] :is(input, a, button)`) ?? []),
  ];
  const [goal, setGoal] = useState<{ row: number; control: number }>();
  useEffect(() => {
    if (!goal) return;
    controls(goal.row)[goal.control]?.focus();
    setGoal(undefined);
  });
  const focused = () => {
    const row = document.activeElement?.closest<HTMLElement>("[data-row]");
    if (!row || !scroller.current?.contains(row)) return undefined;
    const n = Number(row.dataset.row);
    return { row: n, control: controls(n).indexOf(document.activeElement as HTMLElement) };
  };
  const arrow = (by: number) => {
    const from = focused();
    if (!from) return false; // the browser scrolls
    const row = Math.max(0, Math.min(rows.length - 1, from.row + by));
    select(row);
    virtual.scrollToIndex(row);
    setGoal({ row, control: from.control });
  };
  const along = (by: number) => {
    const from = focused();
    if (!from) return false;
    controls(from.row)[from.control + by]?.focus();
  };
  const at = rows[selected]?.session.id;
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => arrow(1),
    ArrowUp: () => arrow(-1),
    ArrowRight: () => along(1),
    ArrowLeft: () => along(-1),
    Enter: () => at !== undefined && onOpen(at),
    x: () => at !== undefined && onMark(at),
  });
  return (
    <section
      ref={scroller}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard
      tabIndex={0}
      aria-label="List of sessions"
      className="min-h-0 flex-1 overflow-y-auto [overflow-anchor:none]"
    >
      {rows.length === 0 && empty}
      <ul className="relative" style={{ height: virtual.getTotalSize() }}>
        {items.map((v) => {
          const row = rows[v.index];
          if (!row) return null;
          return (
            <li
              key={v.key}
              data-row={v.index}
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
                onMark={() => onMark(row.session.id)}
                items={itemsOf(row.session)}
                inTabOrder={v.index === inOrder}
                still={!virtual.isScrolling}
              />
            </li>
          );
        })}
      </ul>
      {q && <SearchHits q={q} />}
      {isFetchingNextPage && <Loading what="more" />}
    </section>
  );
}

function Running({ n }: { n: number }) {
  return n > 0 ? <span className="text-run">● {n} running</span> : null;
}

function Empty({ filtered }: { filtered: boolean }) {
  if (filtered)
    return (
      <Notice title="No matching sessions">
        <Link to="/" className="text-accent underline">
          Show all sessions
        </Link>
      </Notice>
    );
  return (
    <Notice title="No sessions yet">
      <p>Give an agent a task to create the first one:</p>
      <pre className="mt-3 rounded-md border border-line bg-panel px-3 py-2 text-left font-mono text-[13px] text-text">
        tapedeck run "Say hello"
      </pre>
      <p className="mt-3">
        Or start the server with <code className="font-mono">--demo</code> for sample sessions, or{" "}
        <Link to="/import" className="text-accent underline">
          import a file
        </Link>
        .
      </p>
    </Notice>
  );
}
