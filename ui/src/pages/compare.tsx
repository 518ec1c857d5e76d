import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { Diff, DiffSession } from "@tapedeck/client";
import { useEffect, useState } from "react";
import { api } from "@/client";
import { PlayBoth } from "@/components/compare/play-both";
import { StateChanges, TotalsTable } from "@/components/compare/totals-table";
import { CompareTurn } from "@/components/compare/turn";
import { plural } from "@/components/format";
import { Button, ErrorBox, Loading, Notice } from "@/components/ui";

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
  const first = d.turns.find((t) => !t.same)?.turn;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard
    <section className="h-full overflow-y-auto" tabIndex={0} aria-label="Comparison">
      <div className="mx-auto max-w-6xl p-4">
        <div className="mb-3 flex items-center gap-3">
          <h1 className="text-base font-semibold">Compare</h1>
          {!d.same && (
            <Button
              className="ml-auto"
              aria-pressed={playing}
              icon={playing ? "close" : "play"}
              onClick={() => setPlaying(!playing)}
            >
              {playing ? "Close player" : "Play both"}
            </Button>
          )}
        </div>
        <div className="mb-4 grid grid-cols-2 gap-4">
          <Head name="A" s={d.a} />
          <Head name="B" s={d.b} />
        </div>
        <div className="mb-4">
          <TotalsTable diff={d} />
        </div>
        {playing && <PlayBoth key={`${d.a.id} ${d.a.at} ${d.b.id} ${d.b.at}`} diff={d} />}
        <p className="mb-4 rounded-md border border-dashed border-line bg-raised px-3 py-2 text-center text-[13px]">
          {d.same
            ? "Both are identical."
            : d.common_turns > 0
              ? d.common_turns === 1
                ? "The first turn is the same."
                : `The first ${d.common_turns} turns are the same.`
              : "They differ from the first turn on."}
          {d.shared_offset > 0 && (
            <span className="text-muted"> They share the events before offset {d.shared_offset}.</span>
          )}
        </p>
        <ol className="flex flex-col gap-6">
          {d.turns.slice(0, maxTurns).map((t) => (
            <CompareTurn key={t.turn} turn={t} a={d.a.id} b={d.b.id} first={t.turn === first} />
          ))}
        </ol>
        {d.turns.length > maxTurns && (
          <p className="py-4 text-center text-[13px] text-muted">
            {plural(d.turns.length - maxTurns, "more turn")} not shown
          </p>
        )}
        <StateChanges diff={d} />
      </div>
    </section>
  );
}

/** The limit of shown turns. */
const maxTurns = 200;

function Head({ name, s }: { name: string; s: DiffSession }) {
  return (
    <div className="rounded-md border border-line bg-panel px-3 py-2">
      <span className="text-xs font-semibold text-muted">{name}</span>
      <Link to="/s/$id" params={{ id: s.id }} className="block truncate font-medium hover:underline">
        {s.title || s.id}
      </Link>
      <span className="text-xs text-muted">
        {plural(s.turns, "turn")} · at offset {s.at}
      </span>
    </div>
  );
}
