import { useQuery } from "@tanstack/react-query";
import type { Diff, Json } from "@tapedeck/client";
import { api } from "@/client";
import { brief, dollars, duration, short } from "../format";
import { StatusChip } from "../status";
import { ErrorBox } from "../ui";
import { stateDiff } from "./state-diff";
import { type Totals, totalsOf } from "./totals";

/** The totals of each side. */
export function TotalsTable({ diff }: { diff: Diff }) {
  const found = useQuery({
    queryKey: ["totals", diff.a.id, diff.a.at, diff.b.id, diff.b.at],
    queryFn: ({ signal }) =>
      Promise.all([totalsOf(diff.a.id, diff.a.at, { signal }), totalsOf(diff.b.id, diff.b.at, { signal })]),
    retry: false,
  });
  if (found.isError) return <ErrorBox error={found.error} onRetry={() => void found.refetch()} />;
  const [a, b] = found.data ?? [];
  const row = (name: string, of: (t: Totals) => number | undefined, say: (n: number) => string) => ({
    name,
    a: a && of(a),
    b: b && of(b),
    say,
  });
  const rows = [
    { name: "Turns", a: diff.a.turns, b: diff.b.turns, say: String },
    row("Tool calls", (t) => t.tools, String),
    row("Failed tool calls", (t) => t.failed, String),
    row("Tokens", (t) => t.tokens, short),
    row("Cost", (t) => t.cost, dollars),
    row(
      "Run time",
      (t) => t.durationMs,
      (n) => duration(n),
    ),
  ];
  return (
    <table className="w-full text-[13px] tabular-nums">
      <caption className="sr-only">Totals of both sides</caption>
      <thead className="text-left text-xs text-muted">
        <tr>
          <th scope="col" className="font-normal">
            Totals<span className="max-sm:sr-only">, including inherited and reverted turns</span>
          </th>
          <th scope="col" className="w-28 text-right font-semibold max-sm:w-20">
            A
          </th>
          <th scope="col" className="w-28 text-right font-semibold max-sm:w-20">
            B
          </th>
          <th scope="col" className="w-28 text-right font-normal max-sm:w-16">
            B − A
          </th>
        </tr>
      </thead>
      <tbody>
        <tr>
          <th scope="row" className="py-0.5 text-left font-normal">
            Status
          </th>
          <td className="text-right">{a && <StatusChip status={a.status} />}</td>
          <td className="text-right">{b && <StatusChip status={b.status} />}</td>
          <td />
        </tr>
        {rows.map((r) => (
          <tr key={r.name} className="border-t border-line">
            <th scope="row" className="py-0.5 text-left font-normal">
              {r.name}
            </th>
            <td className="text-right">{r.a === undefined ? "–" : r.say(r.a)}</td>
            <td className="text-right">{r.b === undefined ? "–" : r.say(r.b)}</td>
            <td className="text-right text-muted">{difference(r.a, r.b, r.say)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function difference(a: number | undefined, b: number | undefined, say: (n: number) => string): string {
  if (a === undefined || b === undefined) return "";
  return a === b ? "=" : `${b > a ? "+" : "−"}${say(Math.abs(b - a))}`;
}

/** The differences between the final shared states. */
export function StateChanges({ diff }: { diff: Diff }) {
  const found = useQuery({
    queryKey: ["states", diff.a.id, diff.a.at, diff.b.id, diff.b.at],
    queryFn: async ({ signal }) => {
      const [a, b] = await Promise.all(
        [diff.a, diff.b].map((s) => api.snapshot(s.id, { at: s.at, limit: 1 }, { signal })),
      );
      return stateDiff(a?.state?.value, b?.state?.value);
    },
    retry: false,
  });
  const heading = <h2 className="mb-2 text-[13px] font-semibold">Shared state at the end</h2>;
  if (found.isError)
    return (
      <section aria-label="State" className="mt-6">
        {heading}
        <ErrorBox error={found.error} onRetry={() => void found.refetch()} />
      </section>
    );
  if (!found.data || found.data.changes.length === 0) return null;
  const { changes, more } = found.data;
  return (
    <section aria-label="State" className="mt-6">
      {heading}
      <ul className="rounded-md border border-line bg-panel py-1 font-mono text-xs">
        {changes.map((c) => (
          <li key={`${c.op}${c.path}`} className="flex gap-2 px-3 py-0.5 [overflow-wrap:anywhere]">
            <span
              aria-hidden="true"
              className={c.op === "added" ? "text-ok" : c.op === "removed" ? "text-bad" : "text-warn"}
            >
              {c.op === "added" ? "+" : c.op === "removed" ? "−" : "~"}
            </span>
            <span className="font-semibold">{c.path || "(whole state)"}</span>
            <span className="sr-only">
              {c.op === "added" ? "only in B" : c.op === "removed" ? "only in A" : "changed"}
            </span>
            {c.op !== "added" && <del className="text-bad">{say(c.a)}</del>}
            {c.op !== "removed" && <ins className="text-ok">{say(c.b)}</ins>}
          </li>
        ))}
        {more && <li className="px-3 text-muted">More changes are not shown.</li>}
      </ul>
    </section>
  );
}

function say(v: Json | undefined): string {
  return brief(JSON.stringify(v) ?? "", 160);
}
