import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import type { Usage } from "@tapedeck/client";
import { useEffect, useState } from "react";
import { api } from "@/client";
import { dollars, plural, short } from "@/components/format";
import { Button, ErrorBox, field, Loading, Notice } from "@/components/ui";
import { UsageChart } from "@/components/usage/chart";
import { firstDay, type Measure, measureLabels, measures, utcDay } from "@/components/usage/figures";
import { UsageTable } from "@/components/usage/table";
import { useNow } from "@/hooks/tick";

const route = getRouteApi("/usage");

const periods: { days: number | undefined; label: string }[] = [
  { days: 7, label: "7 days" },
  { days: 30, label: "30 days" },
  { days: 90, label: "90 days" },
  { days: undefined, label: "All time" },
];

/** What agents used: tokens, money and failures, by day, agent and model. */
export function UsagePage() {
  const { days = 30, agent } = route.useSearch();
  const navigate = route.useNavigate();
  const [measure, setMeasure] = useState<Measure>("tokens");
  const now = useNow(60_000);
  const limit = days === 0 ? undefined : days;
  const from = firstDay(limit, now);
  const found = useQuery({
    queryKey: ["usage", from, agent],
    queryFn: ({ signal }) => api.usage({ from, agent }, { signal }),
    placeholderData: (old) => old,
    retry: false,
  });
  useEffect(() => {
    document.title = "Usage · Tapedeck";
  }, []);
  const set = (s: { days?: number; agent?: string }) => void navigate({ search: (old) => ({ ...old, ...s }) });
  return (
    <div className="mx-auto flex max-w-5xl flex-col gap-4 px-4 py-4">
      <div className="flex flex-wrap items-end gap-x-4 gap-y-2">
        <div className="min-w-0 flex-1 basis-64">
          <h1 className="text-lg font-semibold">Usage</h1>
          <p className="text-[13px] text-muted">
            Of the runs that ended in this time, of all sessions that you may read. Days are in UTC.
          </p>
        </div>
        <fieldset className="flex gap-1">
          <legend className="sr-only">Time</legend>
          {periods.map((p) => (
            <Button
              key={p.label}
              look="ghost"
              aria-pressed={p.days === limit}
              className="aria-pressed:bg-accent-soft aria-pressed:text-text"
              onClick={() => set({ days: p.days ?? 0 })}
            >
              {p.label}
            </Button>
          ))}
        </fieldset>
      </div>
      {agent !== undefined && (
        <p className="flex flex-wrap items-center gap-3 text-[13px]">
          <span>
            Only the agent <span className="font-medium">{agent}</span>
          </span>
          <Button icon="close" onClick={() => set({ agent: undefined })}>
            All agents
          </Button>
        </p>
      )}
      {found.isPending && <Loading what="the usage" />}
      {found.isError && <ErrorBox error={found.error} onRetry={() => void found.refetch()} />}
      {found.data && found.data.sessions === 0 && (
        <Notice title="Nothing was used in this time">When a run ends, its tokens and its cost appear here.</Notice>
      )}
      {found.data && found.data.sessions > 0 && (
        <Figures
          usage={found.data}
          to={utcDay(now)}
          measure={measure}
          onMeasure={setMeasure}
          onAgent={(a) => set({ agent: a })}
        />
      )}
    </div>
  );
}

interface FiguresProps {
  usage: Usage;
  to: string;
  measure: Measure;
  onMeasure: (m: Measure) => void;
  onAgent: (agent: string) => void;
}

function Figures({ usage: u, to, measure, onMeasure, onAgent }: FiguresProps) {
  return (
    <>
      <Totals usage={u} />
      <section className="flex flex-col gap-2 rounded-md border border-line bg-panel p-3">
        <div className="flex items-center justify-between gap-3">
          <h2 className="font-semibold">By day</h2>
          <select
            aria-label="What the bars show"
            className={field}
            value={measure}
            onChange={(e) => onMeasure(e.target.value as Measure)}
          >
            {measures.map((m) => (
              <option key={m} value={m}>
                {measureLabels[m]}
              </option>
            ))}
          </select>
        </div>
        <UsageChart usage={u} to={to} measure={measure} />
      </section>
      <UsageTable
        title="Agents"
        what="Agent"
        lines={u.agents.map((a) => ({
          key: a.agent,
          name: a.agent || "unknown",
          used: a,
          ...(a.agent && { onOpen: () => onAgent(a.agent) }),
        }))}
      />
      <UsageTable
        title="Models"
        what="Model"
        lines={u.models.map((m) => ({ key: `${m.provider ?? ""} ${m.model}`, name: m.model || "unknown", used: m }))}
      />
      <UsageTable
        title="Days"
        what="Day"
        lines={u.days.toReversed().map((d) => ({ key: d.day, name: d.day, used: d }))}
      />
    </>
  );
}

function Totals({ usage: { total: t, sessions } }: { usage: Usage }) {
  const rate = t.runs > 0 ? ` (${Math.round((100 * t.runs_failed) / t.runs)} %)` : "";
  const all: [string, string, string][] = [
    ["Cost", t.cost_usd === undefined ? "unknown" : dollars(t.cost_usd), "as models reported it"],
    ["Tokens", short(t.total), `${short(t.input)} in, ${short(t.output)} out, ${short(t.cached)} from a cache`],
    ["Runs", t.runs.toLocaleString("en"), `in ${plural(sessions, "session")}`],
    ["Failed runs", t.runs_failed.toLocaleString("en") + rate, "failed or interrupted"],
    ["Failed tools", t.tools_failed.toLocaleString("en"), `of ${plural(t.tool_calls, "call")}`],
  ];
  return (
    <dl className="grid grid-cols-2 gap-2 sm:grid-cols-3 lg:grid-cols-5">
      {all.map(([name, value, about]) => (
        <div key={name} className="rounded-md border border-line bg-panel px-3 py-2">
          <dt className="text-xs text-muted">{name}</dt>
          <dd>
            <span className="block text-lg font-semibold tabular-nums">{value}</span>
            <span className="block text-xs text-muted">{about}</span>
          </dd>
        </div>
      ))}
    </dl>
  );
}
