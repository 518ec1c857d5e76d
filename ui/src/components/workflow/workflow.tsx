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
import { titleOf as titleOfNode } from "./model";
import { Overview, Variables } from "./overview";
import { RewindTask } from "./rewind-task";
import { rowsNow } from "./rows";
import { countsOf, elementsNow, waitsOf } from "./states";
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

  const now = useMemo(() => moment && elementsNow(moment), [moment]);
  const counts = useMemo(() => countsOf(view), [view]);
  const nodes = useMemo(() => new Map(diagram.model?.nodes.map((n) => [n.id, n])), [diagram.model]);
  const classes = useMemo(() => {
    const out = new Map([...(now ?? [])].map(([element, n]) => [element, `state-${n.state}`]));
    for (const [flow, n] of Object.entries(moment?.workflow?.flows ?? {})) if (n > 0) out.set(flow, "state-taken");
    return out;
  }, [now, moment]);
  const rows = rowsNow(diagram, now, counts);

  if (error !== undefined && !moment) return <Failed error={error} onRetry={retry} />;
  if (!moment || !now) return <Loading what="the workflow" />;
  if (!moment.diagram)
    return <Notice title="No workflow at this moment">No workflow has begun before the playhead.</Notice>;
  const titleOf = (element: string) => {
    const n = nodes.get(element);
    return n ? titleOfNode(n) : element;
  };
  const refused = p.closed ? "the session is closed" : state.live ? undefined : "go live first";
  const select = (element: string | undefined) => {
    if (element !== undefined && !nodes.has(element) && !now.has(element)) return;
    if (element !== undefined) setSide("task");
    onTask(element);
  };
  const badges = new Map<string, ReactNode>();
  for (const r of rows) {
    if (!r.isAgent) continue;
    badges.set(
      r.id,
      <Bubble
        title={visible(r.title)}
        state={r.state}
        count={r.count}
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
        <div className="flex min-h-0 min-w-0 flex-1 flex-col max-sm:overflow-y-auto">
          <div className="min-h-56 flex-[3] border-b border-line bg-bg max-sm:order-2 max-sm:h-64 max-sm:flex-none max-sm:border-t max-sm:border-b-0">
            {diagram.model?.drawn ? (
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
            ) : (
              <Notice title="This diagram cannot be drawn">
                {diagram.model && diagram.model.nodes.length > 0
                  ? "The file does not say where its elements are, or it has too many. The list shows all of them."
                  : "The file cannot be read. The list shows what has run."}
              </Notice>
            )}
          </div>
          <div className="flex min-h-0 flex-[2] flex-col bg-panel max-sm:order-1 max-sm:flex-none">
            <TaskList rows={rows} selected={task} onSelect={select} />
          </div>
        </div>
        <aside
          aria-label={chosen ? `Task ${visible(chosen.row.title)}` : "Workflow details"}
          className={`flex w-96 min-w-0 shrink-0 flex-col border-l border-line bg-panel max-lg:absolute max-lg:inset-y-0 max-lg:right-0 max-lg:z-20 max-lg:shadow-xl max-sm:w-full ${chosen || side === "variables" ? "" : "max-lg:hidden"}`}
        >
          <div className="flex items-stretch">
            <div className="min-w-0 flex-1">
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
              id={id}
              view={view}
              jumps={p.jumps}
              live={state.live}
              at={state.at}
              thread={workflow?.thread ?? moment.diagram.thread}
              onAnswer={p.onAnswer}
              onSeek={deck.seek}
              onPlay={deck.playFrom}
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

/** The other elements with work that began after an activation. */
function laterThan(first: WorkflowActivation, all: WorkflowActivation[]): string[] {
  const later = all.filter(
    (a) => a.offset > first.offset && a.element !== first.element && !a.type?.endsWith("Gateway"),
  );
  return [...new Set(later.map((a) => a.element))];
}
