import { getRouteApi, Link } from "@tanstack/react-router";
import { Suspense, useContext, useEffect, useState } from "react";
import { BulkBar } from "@/components/bulk-bar";
import { plural } from "@/components/format";
import { lazyPart } from "@/components/lazy-part";
import { useManage } from "@/components/manage";
import { type Order, usual } from "@/components/session-columns";
import { SessionFilters, SortField } from "@/components/session-filters";
import { SessionList } from "@/components/session-list";
import { Button, ErrorBox, Loading, Notice } from "@/components/ui";
import { useKeys } from "@/hooks/keys";
import { OpenNewSession } from "@/hooks/new-session";
import { type InOrder, useSessions } from "@/hooks/sessions";
import { useViewer } from "@/hooks/viewer";

const route = getRouteApi("/");
const TimeView = lazyPart(() => import("@/components/time/time-view"));

/** Focuses the search field. If it has the focus already, the browser handles the key: Ctrl+f opens its own search. */
const toSearch = () => {
  const field = document.getElementById("search");
  if (field === document.activeElement) return false;
  field?.focus();
};

export function SessionsPage() {
  const { view, t0, t1, sort = "activity", order = usual(sort), ...filter } = route.useSearch();
  const navigate = route.useNavigate();
  const inOrder: InOrder = view === "time" ? { sort: "created", order: "desc" } : { sort, order };
  const list = useSessions(filter, inOrder);
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

  const place = view === "time" ? { view, t0, t1 } : orderInAddress(inOrder);
  const toOrder = (o: InOrder) => void navigate({ search: { ...filter, ...orderInAddress(o) }, replace: true });
  const toStatus = (status: string) => void navigate({ search: { ...filter, status, ...place } });
  const itemsOf = viewer?.role === "reader" ? () => [] : manage.itemsOf;
  const empty = <Empty filtered={Object.values(filter).some(Boolean)} reads={viewer?.role === "reader"} />;
  return (
    <div className="flex h-full flex-col">
      <SessionFilters
        filter={filter}
        onChange={(f) => navigate({ search: { ...f, ...place }, replace: true })}
        order={view === "time" ? undefined : inOrder}
        onOrder={toOrder}
      />
      <div className="flex min-h-10 items-center gap-3 px-4 text-[13px] text-muted max-sm:flex-wrap max-sm:gap-2">
        <h1 className="sr-only">Sessions</h1>
        <Views
          time={view === "time"}
          onChange={(time) => navigate({ search: { ...filter, view: time ? "time" : undefined } })}
        />
        <div role="status" className="flex items-center gap-3 whitespace-nowrap max-sm:gap-2">
          {list.isSuccess && rows.length > 0 && (
            <>
              <span>
                {plural(rows.length, "session")}
                {list.hasNextPage ? " so far" : ""}
              </span>
              {(["waiting", "running"] as const).map((status) => (
                <Live
                  key={status}
                  status={status}
                  n={rows.filter((r) => r.status === status).length}
                  onChoose={() => toStatus(status)}
                />
              ))}
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
        {marked.length === 0 && view !== "time" && (
          <span className="ml-auto hidden sm:inline">
            <SortField order={inOrder} onOrder={toOrder} />
          </span>
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
        <SessionList
          list={list}
          order={inOrder}
          onOrder={toOrder}
          q={filter.q}
          marked={marked}
          onMark={mark}
          onOpen={open}
          empty={empty}
          itemsOf={itemsOf}
        />
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
          className={`rounded px-2.5 py-0.5 max-sm:min-h-11 max-sm:min-w-11 max-sm:px-1.5 ${t === time ? "bg-raised font-medium text-text" : "hover:text-text"}`}
        >
          {t ? "Time" : "List"}
        </button>
      ))}
    </div>
  );
}

/** What the address has of an order: nothing of the usual one. */
function orderInAddress({ sort, order }: InOrder): { sort?: InOrder["sort"]; order?: Order } {
  return {
    ...(sort === "activity" ? {} : { sort }),
    ...(order === usual(sort) ? {} : { order }),
  };
}

/** The number of sessions that run or wait; a click lists only them. */
function Live({ status, n, onChoose }: { status: "waiting" | "running"; n: number; onChoose: () => void }) {
  if (n === 0) return null;
  const [mark, colour] = status === "running" ? ["●", "text-run"] : ["?", "text-warn"];
  return (
    <button type="button" onClick={onChoose} className={`underline-offset-2 hover:underline max-sm:min-h-11 ${colour}`}>
      <span aria-hidden="true">{mark}</span> {n} {status}
    </button>
  );
}

function Empty({ filtered, reads }: { filtered: boolean; reads: boolean }) {
  const openNew = useContext(OpenNewSession);
  if (filtered)
    return (
      <Notice title="No matching sessions">
        <Link to="/" className="text-accent underline">
          Show all sessions
        </Link>
      </Notice>
    );
  if (reads) return <Notice title="No sessions yet">Sessions appear here when somebody shares them with you.</Notice>;
  return (
    <Notice title="No sessions yet">
      <p>Give an agent a task to create the first one:</p>
      <Button look="primary" icon="plus" className="my-4" onClick={openNew}>
        New session
      </Button>
      <p>Or create it in a terminal:</p>
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
