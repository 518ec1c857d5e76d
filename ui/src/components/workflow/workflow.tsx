import type { Snapshot } from "@tapedeck/client";
import type { WorkflowActivation } from "@tapedeck/client/fold";
import type { Deck, DeckState } from "@tapedeck/client/player";
import { type ReactNode, Suspense, useMemo, useState } from "react";
import { useDiagram } from "@/hooks/diagram";
import { useWorkflow } from "@/hooks/workflow";
import { visible } from "../conversation/action";
import type { RowActions } from "../conversation/rows";
import { lazyPart } from "../lazy-part";
import { Tabs } from "../session/panels";
import { ErrorBox, IconButton, Loading, Notice } from "../ui";
import { Bubble } from "./chip";
import { titleOf as titleOfNode, undrawnText } from "./model";
import { Overview, Variables } from "./overview";
import { type Redone, RewindTask } from "./rewind-task";
import { rowsNow } from "./rows";
import { countsOf, elementsNow, openAt, waitsFor, waitsOf } from "./states";
import { TaskList } from "./task-list";
import { TaskPanel } from "./task-panel";
import { Toolbar } from "./toolbar";

const Diagram = lazyPart(() => import("./diagram"));

interface Props {
  id: string;
  deck: Deck;
  state: DeckState;
  view: Snapshot;
  closed: boolean;
  jumps: number;
  task?: string;
  onTask: (element: string | undefined) => void;
  onThread: (thread: string) => void;
  onAnswer: RowActions["onAnswer"];
  notify: (text: string) => void;
}

type Side = "task" | "variables";

/** The workflow of a session at the playhead: its diagram, its tasks, and what was said in each. */
export default function Workflow(p: Props) {
  const { id, deck, state, view, task, onTask } = p;
  const { moment, error, retry } = useWorkflow(deck, state.at);
  const diagram = useDiagram(moment?.diagram);
  const [side, setSide] = useState<Side>("task");
  const [rewind, setRewind] = useState<WorkflowActivation>();
  const [focus, setFocus] = useState(0);

  const now = useMemo(() => moment && elementsNow(moment), [moment]);
  const counts = useMemo(() => countsOf(view), [view]);
  const nodes = useMemo(() => new Map(diagram.model?.nodes.map((n) => [n.id, n])), [diagram.model]);
  const classes = useMemo(() => {
    const out = new Map([...(now ?? [])].map(([element, n]) => [element, `state-${n.state}`]));
    for (const [flow, n] of Object.entries(moment?.workflow?.flows ?? {})) if (n > 0) out.set(flow, "state-taken");
    return out;
  }, [now, moment]);
  const undrawn = undrawnText(diagram.model ?? { drawn: false });
  const rows = rowsNow(diagram, now, counts, view.runs);

  if (error !== undefined && !moment) return <Failed error={error} onRetry={retry} />;
  if (!moment || !now) return <Loading what="the workflow" />;
  if (!moment.diagram)
    return <Notice title="No workflow at this moment">No workflow has begun before the playhead.</Notice>;
  const titleOf = (element: string) => {
    const n = nodes.get(element);
    return n ? titleOfNode(n) : element;
  };
  const refused = p.closed ? "the session is closed" : state.live ? undefined : "go live first";
  const select = (element: string | undefined, byKey = false) => {
    setFocus((n) => (byKey ? n + 1 : 0));
    if (element !== undefined && !nodes.has(element) && !now.has(element)) return;
    if (element !== undefined) setSide("task");
    onTask(element);
  };
  const badges = new Map<string, ReactNode>();
  for (const r of rows) {
    // What was not reached before the end has nothing to open.
    const isPerson = !r.isAgent && r.type === "userTask";
    if ((!r.isAgent && !isPerson) || (r.state === "pending" && moment.workflow?.status !== "running")) continue;
    badges.set(
      r.id,
      <Bubble
        title={visible(r.title)}
        state={r.state}
        count={isPerson ? undefined : r.count}
        selected={r.id === task}
        onOpen={() => select(r.id)}
      />,
    );
  }
  const row = rows.find((r) => r.id === task);
  const chosen = row && {
    node: nodes.get(row.id) ?? { id: row.id, name: row.title, type: row.type, depth: 0, documentation: "" },
    row,
  };
  const variables = moment.workflow?.variables ?? {};
  const { workflow } = moment;
  return (
    <div className="flex min-h-0 min-w-0 flex-1 flex-col">
      <Toolbar id={id} moment={moment} refused={refused} notify={p.notify} onVariables={() => setSide("variables")} />
      {error !== undefined && <Failed error={error} onRetry={retry} />}
      <div className="relative flex min-h-0 flex-1">
        <div className="flex min-h-0 min-w-0 flex-1 flex-col">
          {undrawn === undefined ? (
            <div className="isolate min-h-56 flex-[3] border-b border-line bg-bg max-sm:min-h-40 max-sm:flex-[2]">
              <Suspense fallback={<Loading what="the diagram" />}>
                <Diagram
                  xml={moment.diagram.xml}
                  process={moment.diagram.process}
                  classes={classes}
                  badges={badges}
                  selected={task}
                  onSelect={select}
                />
              </Suspense>
            </div>
          ) : (
            <p role="status" className="border-b border-line px-4 py-2 text-[13px] text-muted">
              {undrawn} The list shows {nodes.size > 0 ? "all of them" : "what has run"}.
            </p>
          )}
          <div className="flex min-h-0 flex-[2] flex-col bg-panel max-sm:flex-[3]">
            <TaskList rows={rows} selected={task} onSelect={select} />
          </div>
        </div>
        <aside
          data-sheet={chosen || side === "variables" ? "" : undefined}
          aria-label={chosen ? `Task ${visible(chosen.row.title)}` : "Workflow details"}
          className={`flex w-96 min-w-0 shrink-0 flex-col border-l border-line bg-panel max-lg:absolute max-lg:inset-y-0 max-lg:right-0 max-lg:z-20 max-lg:shadow-xl max-sm:w-full ${chosen || side === "variables" ? "" : "max-lg:hidden"}`}
        >
          <div className="flex items-stretch">
            <div className="flex min-w-0 flex-1 flex-col justify-end">
              <Tabs
                label="Workflow details"
                names={["task", "variables"] as const}
                labels={{ task: "Task", variables: "Variables" }}
                counts={{ variables: String(Object.keys(variables).length) }}
                current={side}
                onChange={setSide}
              />
            </div>
            <div className={`flex items-center border-b border-line px-1 ${chosen ? "" : "lg:hidden"}`}>
              <IconButton
                icon="close"
                label="Close the panel"
                onClick={() => {
                  setSide("task");
                  onTask(undefined);
                }}
              />
            </div>
          </div>
          {side === "variables" && <Variables variables={variables} />}
          {side === "task" && !chosen && (
            <Overview workflow={workflow} waits={waitsOf(workflow)} titleOf={titleOf} onSelect={select} />
          )}
          {side === "task" && chosen && (
            <TaskPanel
              key={chosen.node.id}
              node={chosen.node}
              now={now.get(chosen.node.id)}
              isAgent={chosen.row.isAgent}
              agent={chosen.row.agent}
              waits={waitsFor(chosen.node.id, workflow)}
              id={id}
              view={view}
              jumps={p.jumps}
              live={state.live}
              at={state.at}
              thread={workflow?.thread ?? moment.diagram.thread}
              onAnswer={p.onAnswer}
              onSeek={deck.seek}
              onPlay={(from, to) => (to === undefined ? deck.playFrom(from) : deck.playSpan(from, to + 1))}
              onLive={deck.goLive}
              focus={focus}
              onThread={p.onThread}
              onRewind={setRewind}
              refused={refused}
            />
          )}
        </aside>
      </div>
      {rewind && (
        <RewindTask
          id={id}
          at={rewind.offset}
          title={visible(rewind.name || titleOf(rewind.element))}
          later={laterThan(rewind, moment.workflow?.activations ?? []).map((e) => visible(titleOf(e)))}
          again={redone(rewind, workflow?.activations ?? [])}
          running={workflow?.status === "running"}
          onClose={() => setRewind(undefined)}
          onDone={(text) => {
            setRewind(undefined);
            p.notify(text);
          }}
        />
      )}
    </div>
  );
}

function Failed({ error, onRetry }: { error: unknown; onRetry: () => void }) {
  return (
    <div className="p-4">
      <ErrorBox error={error} onRetry={onRetry} />
    </div>
  );
}

/** What a resume before an activation does again, although the rewind does not go back to before it. */
function redone(first: WorkflowActivation, all: WorkflowActivation[]): Redone[] {
  return openAt(first.offset, all).map((a) => {
    const name = visible(a.name || a.element);
    return { title: a.index === undefined ? name : `${name}, instance ${a.index + 1}`, asks: a.type === "userTask" };
  });
}

/** The other elements with work that began after an activation. */
function laterThan(first: WorkflowActivation, all: WorkflowActivation[]): string[] {
  const later = all.filter(
    (a) => a.offset > first.offset && a.element !== first.element && !a.type?.endsWith("Gateway"),
  );
  return [...new Set(later.map((a) => a.element))];
}
