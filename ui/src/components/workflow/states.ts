import type { Message, ToolCall } from "@tapedeck/client";
import type { WorkflowActivation, WorkflowView } from "@tapedeck/client/fold";
import type { RevertedActivation, WorkflowMoment } from "@tapedeck/client/workflow";

export type ElementState =
  | "pending"
  | "active"
  | "waiting"
  | "completed"
  | "failed"
  | "interrupted"
  | "cancelled"
  | "reverted";

interface Look {
  label: string;
  mark: string;
  className: string; // of a chip
}

export const looks: Record<ElementState, Look> = {
  pending: { label: "Not reached", mark: "○", className: "text-muted" },
  active: { label: "Active", mark: "●", className: "bg-run-soft text-run" },
  waiting: { label: "Waiting", mark: "◔", className: "bg-warn-soft text-warn" },
  completed: { label: "Done", mark: "✓", className: "bg-ok-soft text-ok" },
  failed: { label: "Failed", mark: "✕", className: "bg-bad-soft text-bad" },
  interrupted: { label: "Interrupted", mark: "‖", className: "bg-warn-soft text-warn" },
  cancelled: { label: "Cancelled", mark: "■", className: "bg-raised text-text" },
  reverted: { label: "Reverted", mark: "↶", className: "bg-raised text-muted line-through" },
};

const isState = (s: string): s is ElementState => Object.hasOwn(looks, s);

/** One time that an element was entered. A reverted one is only in the log. */
export type Activation =
  | { kind: "active"; key: string; a: WorkflowActivation }
  | { kind: "reverted"; key: string; r: RevertedActivation };

/** What the page shows of an element at the playhead. */
export interface ElementNow {
  state: ElementState;
  activations: Activation[]; // oldest first
  entered: number;
}

/** The state of each element that was ever entered before the playhead. */
export function elementsNow(m: WorkflowMoment): Map<string, ElementNow> {
  const out = new Map<string, ElementNow>();
  const of = (id: string): ElementNow => {
    let now = out.get(id);
    if (!now) {
      now = { state: "reverted", activations: [], entered: 0 };
      out.set(id, now);
    }
    return now;
  };
  for (const r of m.reverted) of(r.element).activations.push({ kind: "reverted", key: `r${r.offset}`, r });
  for (const a of m.workflow?.activations ?? [])
    of(a.element).activations.push({ kind: "active", key: `a${a.offset}.${a.id}`, a });
  for (const el of m.workflow?.elements ?? []) {
    const now = of(el.element);
    now.state = isState(el.status) ? el.status : "active";
    now.entered = el.entered;
  }
  return out;
}

/** How much an agent has said and done in a thread. */
export interface Count {
  messages: number;
  calls: number;
  asks: number; // open questions
}

const none: Count = { messages: 0, calls: 0, asks: 0 };

interface Said {
  messages: Message[];
  tool_calls: ToolCall[];
  permissions?: { thread: string; status: string }[];
}

/** The counts of each thread. */
export function countsOf(view: Said): Map<string, Count> {
  const out = new Map<string, Count>();
  const of = (thread: string): Count => {
    const c = out.get(thread) ?? { ...none };
    out.set(thread, c);
    return c;
  };
  for (const m of view.messages) if (m.role === "assistant" && m.text !== "") of(m.thread).messages++;
  for (const c of view.tool_calls) of(c.thread).calls++;
  for (const p of view.permissions ?? []) if (p.status === "open") of(p.thread).asks++;
  return out;
}

/** The counts of all active activations of an element. */
export function countOf(now: ElementNow | undefined, counts: Map<string, Count>): Count {
  const sum = { ...none };
  const threads = new Set(now?.activations.map((x) => (x.kind === "active" ? x.a.thread : undefined)));
  for (const t of threads) {
    const c = t === undefined ? undefined : counts.get(t);
    if (!c) continue;
    sum.messages += c.messages;
    sum.calls += c.calls;
    sum.asks += c.asks;
  }
  return sum;
}

/** What a workflow waits for that a person or a program can do. */
export interface Wait {
  element: string;
  activation?: WorkflowActivation;
  for: string;
  message?: string;
  correlation?: string;
  signal?: string;
  due?: string;
  permission?: string;
  offset: number;
}

export function waitsOf(w: WorkflowView | undefined): Wait[] {
  if (!w) return [];
  const inside = w.activations.flatMap((a) => (a.waits ?? []).map((wait) => ({ ...wait, activation: a })));
  return [...inside, ...(w.waits ?? [])].filter((wait) => wait.for !== "agent");
}

/** What a wait is for, as a sentence without its element. */
export function waitText(w: Wait): string {
  switch (w.for) {
    case "user":
      return "waits for an answer";
    case "message":
      return `waits for the message ${w.message ?? ""}${w.correlation ? ` (${w.correlation})` : ""}`;
    case "signal":
      return `waits for the signal ${w.signal ?? ""}`;
    case "timer":
      return w.due ? `waits until ${timeText(w.due)}` : "waits for a time";
    default:
      return `waits for ${w.for}`;
  }
}

function timeText(at: string): string {
  const d = new Date(at);
  if (Number.isNaN(d.getTime())) return at;
  return d.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });
}
