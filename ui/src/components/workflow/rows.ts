import type { Run } from "@tapedeck/client";
import type { DiagramInfo } from "@/hooks/diagram";
import { type DiagramNode, isStep, titleOf } from "./model";
import { type Count, countOf, type ElementNow, tookMs } from "./states";
import type { TaskRow } from "./task-list";

/** The lines of the list: the nodes of the diagram, then what ran but is not in it. */
export function rowsNow(
  { model, agents }: DiagramInfo,
  now: Map<string, ElementNow> | undefined,
  counts: Map<string, Count>,
  runs: Run[],
): TaskRow[] {
  const nodes = model?.nodes ?? [];
  const known = new Set(nodes.map((n) => n.id));
  const others = [...(now ?? [])].filter(([id]) => !known.has(id)).map(([id, n]) => unknown(id, n));
  return [...nodes, ...others]
    .filter((n) => isStep(n) || isNotable(now?.get(n.id)))
    .map((n) => {
      const here = now?.get(n.id);
      const ran = here?.activations.findLast((x) => x.kind === "active");
      const thread = here?.activations.some((x) => (x.kind === "active" ? x.a.thread : x.r.thread));
      return {
        id: n.id,
        title: titleOf(n),
        type: n.type,
        depth: n.depth,
        state: here?.state ?? "pending",
        agent: agents.get(n.id),
        isAgent: agents.has(n.id) || thread === true,
        count: countOf(here, counts),
        entered: here?.entered ?? 0,
        tookMs: ran?.kind === "active" ? tookMs(ran.a, runs) : undefined,
      };
    });
}

/** A gateway without a name is of interest only while something is there. */
const isNotable = (n: ElementNow | undefined): boolean =>
  n !== undefined && n.state !== "completed" && n.state !== "reverted";

function unknown(id: string, now: ElementNow): DiagramNode {
  const some = now.activations.find((x) => x.kind === "active");
  const a = some?.kind === "active" ? some.a : undefined;
  return { id, name: a?.name || id, type: a?.type || "task", depth: 0, documentation: "" };
}
