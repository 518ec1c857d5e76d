import type { JsonObject } from "./types.ts";

/** What view.Workflow is in the server; see docs/views.md. */
export interface WorkflowView {
  offset: number;
  thread: string;
  invocation?: string;
  process?: string;
  name?: string;
  digest: string;
  xml?: string;
  status: Status;
  outcome?: string; // completed, failed, cancelled or terminated
  message?: string;
  code?: string;
  element?: string; // that failed
  agents?: Record<string, string>;
  started_at: string;
  ended_at?: string;
  variables: JsonObject;
  elements: WorkflowElement[];
  flows: Record<string, number>;
  activations: WorkflowActivation[];
  earlier?: number;
  tokens: WorkflowToken[];
  waits?: WorkflowWait[];
  messages?: { offset: number; name: string; correlation?: string; variables?: JsonObject; sender?: string }[];
}

export type Status = "running" | "complete" | "failed" | "cancelled" | "interrupted";

export interface WorkflowElement {
  element: string;
  name?: string;
  type?: string;
  status: string; // as in WorkflowActivation
  entered: number;
  left: number;
  failed?: number;
  open?: number;
  thread?: string;
  attempt?: number;
  offset: number;
}

export interface WorkflowActivation {
  id: string;
  element: string;
  name?: string;
  type?: string;
  scope?: string;
  status: string; // active, waiting, completed, failed, interrupted or cancelled
  index?: number;
  count?: number;
  thread?: string;
  attempt?: number;
  waits?: WorkflowWait[];
  variables?: JsonObject;
  code?: string;
  message?: string;
  offset: number;
  end_offset?: number;
  started_at: string;
  ended_at?: string;
  compensates?: string; // the completed activation that it compensates
}

export interface WorkflowToken {
  flow?: string;
  element?: string;
  scope?: string;
}

export interface WorkflowWait {
  element: string;
  for: string; // agent, user, timer, message or signal
  due?: string;
  repeats?: number;
  message?: string;
  correlation?: string;
  signal?: string;
  permission?: string;
  agent?: string;
  within?: boolean; // the element is an event sub-process in what waits
  offset: number;
}
