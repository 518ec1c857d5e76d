import type { Message, Run, ToolCall } from "@tapedeck/client";
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
  for (const wait of waitsOf(m.workflow)) {
    if (!out.has(wait.element)) of(wait.element).state = "waiting"; // an event that others wait for: it was not entered yet
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

/**
 * Where the newest run of an activation began. An activation that was resumed after a rewind or a
 * crash keeps its first entry, but its agent has begun again on another thread.
 */
export function beginOf(a: WorkflowActivation, runs: Run[]): Pick<Run, "offset" | "started_at"> {
  const run = a.thread === undefined ? undefined : runs.findLast((r) => r.thread === a.thread);
  return run && (a.attempt ?? 1) > 1 && run.offset > a.offset ? run : a;
}

/** How long the newest run took. While it runs, the clock of the page could be wrong, so nothing is said. */
export function tookMs(a: WorkflowActivation, runs: Run[]): number | undefined {
  if (a.ended_at === undefined) return undefined;
  return Math.max(0, Date.parse(a.ended_at) - Date.parse(beginOf(a, runs).started_at));
}

/** The activations whose work was open at an offset: a resume there does it from its beginning. */
export function openAt(at: number, all: WorkflowActivation[]): WorkflowActivation[] {
  return all.filter(
    (a) =>
      a.offset < at &&
      (a.end_offset === undefined || a.end_offset >= at) &&
      (a.thread !== undefined || a.type === "userTask"),
  );
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

/** The waits for an event that are not in its own activations: an event sub-process, or an event at a boundary. */
export function waitsFor(element: string, w: WorkflowView | undefined): Wait[] {
  return waitsOf(w).filter((wait) => wait.element === element && wait.activation?.element !== element);
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
