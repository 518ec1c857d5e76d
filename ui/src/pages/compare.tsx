import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { Diff, DiffSession } from "@tapedeck/client";
import { useEffect, useMemo, useRef, useState } from "react";
import { api } from "@/client";
import { sameUntil, stopsIn } from "@/components/compare/parts";
import { PlayBoth } from "@/components/compare/play-both";
import { StateChanges, TotalsTable } from "@/components/compare/totals-table";
import { CompareTurn } from "@/components/compare/turn";
import { plural } from "@/components/format";
import { Button, ErrorBox, IconButton, Loading, Notice } from "@/components/ui";
import { useDifferences } from "@/hooks/differences";

const route = getRouteApi("/compare");

export function ComparePage() {
  const { a, b, at_a, at_b } = route.useSearch();
  const found = useQuery({
    queryKey: ["diff", a, b, at_a, at_b],
    queryFn: ({ signal }) => api.diff({ a: a ?? "", b: b ?? "", at_a, at_b }, { signal }),
    enabled: Boolean(a && b),
    retry: false,
  });
  useEffect(() => {
    document.title = "Compare · Tapedeck";
  }, []);
  if (!a || !b)
    return (
      <Notice title="Select two sessions to compare">
        Mark two sessions in{" "}
        <Link to="/" className="text-accent underline">
          the list
        </Link>{" "}
        and press c.
      </Notice>
    );
  if (found.isPending) return <Loading what="the comparison" />;
  if (found.isError)
    return (
      <div className="mx-auto max-w-2xl p-8">
        <ErrorBox error={found.error} onRetry={() => void found.refetch()} />
      </div>
    );
  return <Comparison diff={found.data} />;
}

function Comparison({ diff: d }: { diff: Diff }) {
  const [playing, setPlaying] = useState(false);
  const scroller = useRef<HTMLElement>(null);
  const turns = useMemo(() => d.turns.slice(0, maxTurns), [d]);
  const count = useMemo(() => turns.reduce((n, t) => n + stopsIn(t), 0), [turns]);
  const differences = useDifferences(scroller, count);
  return (
    <section
      ref={scroller}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard
      tabIndex={0}
      aria-label="Comparison"
      className="h-full overflow-y-auto"
    >
      <div className="mx-auto max-w-7xl px-4 pb-8">
        <div className="sticky top-0 z-10 mb-3 border-b border-line bg-bg py-3">
          <div className="mb-2 flex flex-wrap items-center gap-x-3 gap-y-2">
            <h1 className="text-base font-semibold">Compare</h1>
            {count > 0 && <Steps {...differences} count={count} />}
            {!d.same && (
              <Button
                className="ml-auto"
                aria-pressed={playing}
                icon={playing ? "close" : "play"}
                onClick={() => {
                  setPlaying(!playing);
                  if (!playing) scroller.current?.scrollTo({ top: 0 }); // the player is above the differences
                }}
              >
                {playing ? "Close player" : "Play both"}
              </Button>
            )}
          </div>
          <div className="grid grid-cols-2 gap-3">
            <Head name="A" s={d.a} />
            <Head name="B" s={d.b} />
          </div>
        </div>
        {playing && <PlayBoth key={`${d.a.id} ${d.a.at} ${d.b.id} ${d.b.at}`} diff={d} />}
        <p className="mb-4 rounded-md border border-dashed border-line bg-raised px-3 py-2 text-center text-[13px]">
          {sameUntil(d)}
          {d.shared_offset > 0 && (
            <span className="text-muted"> They share the events before offset {d.shared_offset}.</span>
          )}
        </p>
        <ol className="flex flex-col gap-6">
          {turns.map((t, i) => (
            <CompareTurn key={t.turn} turn={t} a={d.a.id} b={d.b.id} first={i === 0} />
          ))}
        </ol>
        {d.turns.length > maxTurns && (
          <p className="py-4 text-center text-[13px] text-muted">
            {plural(d.turns.length - maxTurns, "more turn")} not shown
          </p>
        )}
        <StateChanges diff={d} />
        <div className="mt-8">
          <TotalsTable diff={d} />
        </div>
      </div>
    </section>
  );
}

/** The limit of shown turns. */
const maxTurns = 200;

/** The buttons that lead from difference to difference. */
function Steps({ at, count, previous, next }: ReturnType<typeof useDifferences> & { count: number }) {
  return (
    <div className="flex items-center gap-1 text-[13px] text-muted">
      <IconButton label="Previous difference" keys="[" icon="up" disabled={at === 0} onClick={previous} />
      <IconButton label="Next difference" keys="]" icon="down" disabled={at >= count - 1} onClick={next} />
      <span className="tabular-nums" aria-live="polite">
        <span className="max-sm:sr-only">Difference </span>
        {at + 1} of {count}
      </span>
    </div>
  );
}

function Head({ name, s }: { name: string; s: DiffSession }) {
  return (
    <div className="flex min-w-0 items-center gap-2 rounded-md border border-line bg-panel px-3 py-1.5">
      <span
        aria-hidden="true"
        className="grid size-6 shrink-0 place-items-center rounded bg-raised text-xs font-semibold"
      >
        {name}
      </span>
      <div className="min-w-0">
        <Link
          to="/s/$id"
          params={{ id: s.id }}
          dir="auto"
          aria-label={`${name}: ${s.title || s.id}`}
          title={s.title || s.id}
          className="block truncate font-medium pointer-coarse:py-2 hover:underline"
        >
          {s.title || s.id}
        </Link>
        <p className="truncate text-xs text-muted">
          {s.agent && `${s.agent} · `}
          {plural(s.turns, "turn")} · before offset {s.at}
        </p>
      </div>
    </div>
  );
}
