import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useEffect } from "react";
import { DiffLines } from "@/components/conversation/edit-diff";
import { brief, plural } from "@/components/format";
import { ErrorBox, Loading, Notice } from "@/components/ui";
import { api } from "@/data/api";
import type { DiffChange, DiffSession, DiffSide, DiffTurn } from "@/data/diff";

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
      <Notice title="Which two?">
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
  const d = found.data;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section className="h-full overflow-y-auto" tabIndex={0} aria-label="Comparison">
      <div className="mx-auto max-w-6xl p-4">
        <h1 className="mb-3 text-base font-semibold">Compare</h1>
        <div className="mb-4 grid grid-cols-2 gap-4">
          <Head name="A" s={d.a} />
          <Head name="B" s={d.b} />
        </div>
        <p className="mb-4 rounded-md bg-raised px-3 py-2 text-[13px]">
          {d.same
            ? "They are the same."
            : d.common_turns > 0
              ? d.common_turns === 1
                ? "The first turn is the same."
                : `The first ${d.common_turns} turns are the same.`
              : "They differ from the first turn."}
          {d.shared_offset > 0 && (
            <span className="text-muted"> They share the events before offset {d.shared_offset}.</span>
          )}
        </p>
        <ol className="flex flex-col gap-6">
          {d.turns.map((t) => (
            <Turn key={t.turn} turn={t} a={d.a.id} b={d.b.id} />
          ))}
        </ol>
      </div>
    </section>
  );
}

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

function Turn({ turn: t, a, b }: { turn: DiffTurn; a: string; b: string }) {
  return (
    <li>
      <h2 className="mb-1 text-[13px] font-semibold text-muted">
        Turn {t.turn}
        {t.same && " · the same"}
      </h2>
      <div className="grid grid-cols-2 gap-4">
        <Side id={a} side={t.a} />
        <Side id={b} side={t.b} />
      </div>
      {(t.changes ?? [])
        .filter((c) => c.op === "changed")
        .map((c) => (
          <Change key={`${c.kind} ${c.a_offset} ${c.b_offset}`} change={c} />
        ))}
    </li>
  );
}

function Side({ id, side }: { id: string; side: DiffSide | null }) {
  if (!side)
    return <p className="rounded-md border border-dashed border-line px-3 py-2 text-[13px] text-muted">No such turn</p>;
  const items = [...side.messages, ...side.tools].sort((x, y) => x.offset - y.offset);
  return (
    <ul className="flex min-w-0 flex-col gap-1 rounded-md border border-line bg-panel px-3 py-2 text-[13px]">
      {items.map((i) => (
        <li key={`${i.kind}${i.offset}`} className="[overflow-wrap:anywhere]">
          <Link
            to="/s/$id"
            params={{ id }}
            search={{ at: i.offset + 1 }}
            className="mr-1.5 text-xs font-semibold text-muted hover:underline"
          >
            {i.name}
          </Link>
          {i.kind === "tool" ? (
            <span className="font-mono text-xs">{brief(i.arguments ?? "", 160)}</span>
          ) : (
            brief(i.text ?? "", 400)
          )}
          {i.status === "failed" && <span className="text-bad"> ✕ failed</span>}
        </li>
      ))}
    </ul>
  );
}

function Change({ change: c }: { change: DiffChange }) {
  const parts = [
    ["text", c.text],
    ["arguments", c.arguments],
    ["status", c.status],
  ] as const;
  return (
    <details className="mt-2 text-[13px]" open>
      <summary className="text-muted">{c.name}: what is different (− in A, + in B)</summary>
      {parts.map(
        ([name, lines]) =>
          lines && lines.length > 0 && <DiffLines key={name} lines={lines} label={`${name} of ${c.name}`} />,
      )}
    </details>
  );
}
