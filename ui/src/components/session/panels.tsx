import { useQuery } from "@tanstack/react-query";
import type { ReplayIndex, Run, Snapshot, Thread, ToolCall } from "@tapedeck/client";
import { Tabs as Radix } from "radix-ui";
import { type CSSProperties, memo, type ReactNode, useEffect, useRef } from "react";
import type { PositionText } from "@/hooks/position-text";
import { useSource } from "@/hooks/source";
import { useThrottled } from "@/hooks/tick";
import { type Panel, panels } from "@/router/search";
import type { Hidden } from "../events/raw-events";
import { dollars, duration, plural, short } from "../format";
import { JsonView } from "../json";
import { StatusChip } from "../status";
import { Button, ErrorBox, IconButton, Loading } from "../ui";
import { ChangesPanel } from "./changes-panel";
import { OutlinePanel } from "./outline-panel";
import { Resizer, usePanelWidth } from "./resizer";
import { Tools } from "./tools";

/** What the panels show of a conversation: nothing that changes with each event. */
export type PanelView = Pick<Snapshot, "tool_calls" | "plan" | "state" | "runs"> & { threads: PanelThread[] };
type PanelThread = Pick<Thread, "name" | "parent" | "messages" | "status">;

/** What the panels show of a part of a conversation. */
export function panelView({ tool_calls, plan, state, runs }: Snapshot, threads: Snapshot["threads"]): PanelView {
  const named = threads.map(({ name, parent, messages, status }) => ({ name, parent, messages, status }));
  return { tool_calls, plan, state, runs, threads: named };
}

interface Props {
  id: string;
  view: PanelView;
  positionText: PositionText;
  head: number;
  panel: Panel;
  onPanel: (p: Panel) => void;
  thread?: string;
  onThread: (t?: string) => void;
  /** Opens a thread in its own panel. */
  onPane?: (t: string) => void;
  onSeek: (at: number) => void;
  /** Goes to the turn that begins at an offset. */
  onTurn: (offset: number) => void;
  /** What the panel Outline shows beside the view, while it is open. */
  outline?: { index: ReplayIndex | undefined; hidden: Hidden[]; at: number };
  /** What the panel Changes shows, while it is open: calls, also those of sub-agents, and the number of messages that are not loaded. */
  changed?: { calls: ToolCall[]; earlier: number };
  onClear?: (thread: string) => void;
  /** Changes the shared state in a fork; absent in a recording. */
  onEditState?: () => void;
  /** The panel People; absent in a recording. */
  people?: ReactNode;
  peopleCount?: number;
}

/** The panels beside the conversation. They show the state at the playhead. */
export const Panels = memo(function Panels(p: Props) {
  const { view } = p;
  const [width, setWidth] = usePanelWidth();
  const done = view.plan?.entries.filter((e) => e.status === "completed").length ?? 0;
  const counts: Partial<Record<Panel, string>> = {
    plan: view.plan ? `${done}/${view.plan.entries.length}` : "",
    threads: view.threads.length > 1 ? String(view.threads.length) : "",
    people: p.peopleCount ? String(p.peopleCount) : "",
  };
  const names = p.people ? panels : panels.filter((n) => n !== "people");
  return (
    <aside
      aria-label="Session details"
      style={{ "--width": `${width}px` } as CSSProperties}
      className="relative flex w-(--width) max-w-[60%] shrink-0 flex-col border-l border-line bg-panel max-lg:absolute max-lg:inset-y-0 max-lg:right-0 max-lg:z-20 max-lg:w-[28.5rem] max-lg:max-w-full max-lg:shadow-lg"
    >
      <Resizer width={width} onWidth={setWidth} />
      <Tabs
        names={names}
        labels={labels}
        counts={counts}
        current={p.panel}
        onChange={p.onPanel}
        label="Panels"
        controls="panel"
        tight
      />
      <div
        role="tabpanel"
        id="panel"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard
        tabIndex={0}
        aria-label={labels[p.panel]}
        className="min-h-0 flex-1 overflow-y-auto p-3 text-[13px]"
      >
        {p.panel === "outline" && p.outline && (
          <OutlinePanel {...p.outline} calls={view.tool_calls} positionText={p.positionText} onTurn={p.onTurn} />
        )}
        {p.panel === "changes" && p.changed && <ChangesPanel {...p.changed} onSeek={p.onSeek} />}
        {p.panel === "tools" &&
          (view.tool_calls.length > 0 ? (
            <Tools calls={view.tool_calls} positionText={p.positionText} onSeek={p.onSeek} />
          ) : (
            <EmptyNote>No tool calls.</EmptyNote>
          ))}
        {p.panel === "plan" && <PlanList view={view} />}
        {p.panel === "state" && <State view={view} onEdit={p.onEditState} />}
        {p.panel === "threads" && <Threads {...p} />}
        {p.panel === "summary" && <SummaryList id={p.id} head={p.head} />}
        {p.panel === "people" && p.people}
      </div>
    </aside>
  );
});

const labels: Record<Panel, string> = {
  outline: "Outline",
  changes: "Changes",
  tools: "Tools",
  plan: "Plan",
  state: "State",
  threads: "Threads",
  summary: "Summary",
  people: "People",
};

interface TabsProps<T extends string> {
  names: readonly T[];
  labels: Record<T, string>;
  counts?: Partial<Record<T, string>>;
  current: T;
  onChange: (t: T) => void;
  label: string;
  /** The id of the tab panel, if there is one. */
  controls?: string;
  /** Use little space, because there are many tabs. */
  tight?: boolean;
}

export function Tabs<T extends string>(p: TabsProps<T>) {
  const { names, labels, counts, current, onChange, label, controls, tight } = p;
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // Not all tabs may be visible at once.
    list.current?.querySelector(`[data-tab="${current}"]`)?.scrollIntoView?.({ block: "nearest", inline: "nearest" });
  }, [current]);
  return (
    <Radix.Root value={current} onValueChange={(t) => onChange(t as T)}>
      <Radix.List
        ref={list}
        aria-label={label}
        className={`more-aside flex shrink-0 overflow-x-auto border-b border-line ${tight ? "justify-between px-1.5" : "gap-1 px-2 max-sm:gap-0"}`}
      >
        {names.map((n) => (
          <Radix.Trigger
            key={n}
            value={n}
            data-tab={n}
            aria-controls={n === current ? controls : undefined}
            className={`-mb-px border-b-2 ${tight ? "px-1" : "px-1.5 max-sm:px-1"} py-2 text-[13px] whitespace-nowrap ${n === current ? "border-accent font-medium" : "border-transparent text-muted hover:text-text"}`}
          >
            {labels[n]}
            {counts?.[n] && <span className="ml-1 text-xs text-muted tabular-nums max-sm:hidden">{counts[n]}</span>}
          </Radix.Trigger>
        ))}
      </Radix.List>
    </Radix.Root>
  );
}

function EmptyNote({ children }: { children: ReactNode }) {
  return <p className="py-6 text-center text-muted">{children}</p>;
}

function State({ view, onEdit }: { view: PanelView; onEdit?: () => void }) {
  return (
    <div className="flex flex-col gap-2">
      {view.state ? (
        <JsonView value={view.state.value} label="Shared state" />
      ) : (
        <EmptyNote>No shared state.</EmptyNote>
      )}
      {onEdit && (
        <Button icon="edit" className={view.state ? "self-start" : "self-center"} onClick={onEdit}>
          Change it in a fork
        </Button>
      )}
    </div>
  );
}

const planMarks: Record<string, string> = { completed: "✓", in_progress: "→", cancelled: "■", interrupted: "‖" };

function PlanList({ view }: { view: PanelView }) {
  const entries = view.plan?.entries ?? [];
  const running = view.plan?.status === "running";
  if (entries.length === 0) return <EmptyNote>No plan.</EmptyNote>;
  return (
    <ul className="flex flex-col gap-1.5">
      {entries.map((e, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: entries have no id
        <li key={i} className={`flex gap-2 ${e.status === "completed" ? "text-muted" : ""}`}>
          <span
            aria-hidden="true"
            className={`w-3 shrink-0 text-center ${
              e.status === "completed" ? "text-ok" : e.status === "in_progress" && running ? "text-run" : "text-muted"
            }`}
          >
            {planMarks[e.status ?? ""] ?? "○"}
          </span>
          <span className={e.status === "completed" ? "line-through" : e.status === "in_progress" ? "font-medium" : ""}>
            {e.content}
          </span>
          {e.status === "cancelled" || e.status === "interrupted" ? (
            <span className="ml-auto shrink-0 text-xs text-muted">{e.status}</span>
          ) : (
            <span className="sr-only">{e.status ?? "pending"}</span>
          )}
        </li>
      ))}
    </ul>
  );
}

function Threads({ view, thread, onThread, onPane, onClear }: Props) {
  return (
    <ul className="flex flex-col gap-1">
      <li className="flex">
        <ThreadButton current={thread === undefined} onClick={() => onThread(undefined)} name="All threads" />
      </li>
      {view.threads.map((t) => (
        <li key={t.name} className="flex items-center gap-1">
          <ThreadButton
            current={thread === t.name}
            onClick={() => onThread(t.name)}
            name={threadLabel(t, view)}
            about={plural(t.messages, "message")}
          >
            <StatusChip status={t.status} />
          </ThreadButton>
          {onPane && (
            <IconButton
              className="size-7"
              icon="forward"
              label={`Open ${t.name} in a panel`}
              onClick={() => onPane(t.name)}
            />
          )}
          {onClear && (
            <Button look="ghost" aria-label={`Clear ${t.name}`} onClick={() => onClear(t.name)}>
              Clear
            </Button>
          )}
        </li>
      ))}
    </ul>
  );
}

/** A sub-agent's thread is named by its agent and its parent thread, because its own name is generated. */
function threadLabel(t: PanelThread, view: { runs: Run[] }): string {
  if (!t.parent) return t.name;
  return `${view.runs.find((r) => r.thread === t.name)?.agent || "sub-agent"}, started in ${t.parent}`;
}

function ThreadButton({
  current,
  onClick,
  name,
  about,
  children,
}: {
  current: boolean;
  onClick: () => void;
  name: string;
  about?: string;
  children?: ReactNode;
}) {
  return (
    <button
      type="button"
      aria-pressed={current}
      onClick={onClick}
      className={`flex min-w-0 flex-1 items-center gap-2 rounded-md border px-2 py-1.5 text-left hover:bg-raised ${current ? "border-accent" : "border-transparent"}`}
    >
      <span className="min-w-0 flex-1">
        <span className="block truncate font-medium">{name}</span>
        {about && <span className="block text-xs text-muted">{about}</span>}
      </span>
      {children}
    </button>
  );
}

/** The totals of the session, including reverted events. */
export function useSummary(id: string, head: number) {
  const source = useSource();
  return useQuery({
    queryKey: ["summary", id, useThrottled(head, 1000)],
    queryFn: ({ signal }) => source.summary(id, { signal }),
    placeholderData: (old) => old,
    retry: false,
  });
}

function SummaryList({ id, head }: { id: string; head: number }) {
  const found = useSummary(id, head);
  if (found.isPending) return <Loading what="the summary" />;
  if (found.isError) return <ErrorBox error={found.error} onRetry={() => void found.refetch()} />;
  const s = found.data;
  const rows: [string, ReactNode][] = [
    ["Turns", s.turns],
    ["Model calls", s.model_turns],
    ["Run time", duration(s.duration_ms)],
    ["Length", s.axis === "time" ? duration(s.recording_ms) : "no times recorded"],
    ["Input tokens", short(s.tokens.input)],
    ["Output tokens", short(s.tokens.output)],
    ["Cost", s.cost_usd === undefined ? "unknown" : dollars(s.cost_usd)],
    ["Events", s.events.toLocaleString("en")],
  ];
  if (s.lines_added + s.lines_removed > 0) rows.push(["Lines", `+${s.lines_added} −${s.lines_removed}`]);
  if (s.inherited_events > 0) rows.push(["Inherited events", s.inherited_events.toLocaleString("en")]);
  return (
    <div className="flex flex-col gap-4">
      <dl className="grid grid-cols-[1fr_auto] gap-y-1 tabular-nums">
        {rows.map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-muted">{name}</dt>
            <dd className="text-right">{value}</dd>
          </div>
        ))}
      </dl>
      {s.models.length > 0 && (
        <Section title="Models">
          {s.models.map((m) => (
            <li key={`${m.provider} ${m.model}`} className="flex justify-between gap-2">
              <span className="truncate">{m.model || "unknown"}</span>
              <span className="text-muted tabular-nums">
                {short(m.total)}
                {m.cost_usd === undefined ? "" : ` · ${dollars(m.cost_usd)}`}
              </span>
            </li>
          ))}
        </Section>
      )}
      {s.tools.length > 0 && (
        <Section title="Tools">
          {s.tools.map((t) => (
            <li key={t.name} className="flex justify-between gap-2">
              <span className="truncate font-mono text-xs">{t.name || "other"}</span>
              <span className="text-muted tabular-nums">
                {t.count}× {t.failed > 0 && <span className="text-bad">{t.failed} failed </span>}
                {duration(t.duration_ms)}
              </span>
            </li>
          ))}
        </Section>
      )}
      <Files paths={s.files_modified} leftOut={s.files_left_out ?? 0} />
    </div>
  );
}

/** The limit of shown files. */
const maxFiles = 200;

/** The modified files. `leftOut` counts modifications of files that are not in `paths`. */
export function Files({ paths, leftOut }: { paths: string[]; leftOut: number }) {
  const more = paths.length - maxFiles;
  const notShown: string[] = [];
  if (more > 0) notShown.push(plural(more, "more file"));
  if (leftOut > 0) notShown.push(plural(leftOut, "change to other files", "changes to other files"));
  if (paths.length === 0 && leftOut === 0) return null;
  return (
    <Section title="Files">
      {paths.slice(0, maxFiles).map((f) => (
        <li key={f} className="truncate font-mono text-xs" title={f}>
          {f}
        </li>
      ))}
      {notShown.length > 0 && <li className="text-muted">Not shown: {notShown.join(" and ")}</li>}
    </Section>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section>
      <h2 className="mb-1 text-xs font-semibold text-muted">{title}</h2>
      <ul className="flex flex-col gap-0.5">{children}</ul>
    </section>
  );
}
