import { useQuery } from "@tanstack/react-query";
import type { StartedDiagram } from "@tapedeck/client/workflow";
import { useMemo } from "react";
import { api } from "@/client";
import { type DiagramModel, modelOf } from "@/components/workflow/model";

export interface DiagramInfo {
  model?: DiagramModel;
  /** The agent of each task that agents do; "" if the file leaves it open. */
  agents: Map<string, string>;
}

/** What a diagram has. The server says which tasks are work of agents: it reads all notations. */
export function useDiagram(d: StartedDiagram | undefined): DiagramInfo {
  const { xml, process, digest } = d ?? {};
  const model = useMemo(() => (xml === undefined ? undefined : modelOf(xml, process)), [xml, process]);
  const chosen = d?.agents;
  const checked = useQuery({
    queryKey: ["diagram", digest, xml?.length, JSON.stringify(chosen)],
    queryFn: ({ signal }) => api.checkWorkflow({ bpmn: xml, agents: chosen }, { signal }),
    enabled: xml !== undefined,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  const agents = useMemo(() => new Map(checked.data?.tasks.map((t) => [t.element, t.agent ?? ""])), [checked.data]);
  return { model, agents };
}
