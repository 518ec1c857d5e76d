import type { Conversation } from "./conversation.ts";
import { patch, Unpatchable } from "./patch.ts";
import { Reader, read } from "./read.ts";
import type { ThreadFold } from "./thread.ts";
import type { Event, Json, PlanEntry, Status } from "./types.ts";

export function stateSnapshot(_: Conversation, t: ThreadFold, e: Event): boolean {
  const r = read(e);
  const value = r.raw("snapshot");
  if (!r.ok || value === undefined) return false;
  t.state = { value, shared: 0, offset: e.offset, invocation: e.invocation ?? "" };
  return true;
}

export function stateDelta(c: Conversation, t: ThreadFold, e: Event): boolean {
  const r = read(e);
  if (!r.ok) return false;
  attempt(c, e, () => {
    if (t.state.shared > 0) c.budget.spend(t.state.shared); // the copy of the initial state costs, and there may be many threads
    t.state = { ...t.state, shared: 0 };
    const value = patch(t.state.value === undefined ? {} : t.state.value, r.raw("delta"), c.budget);
    t.state = { value, shared: 0, offset: e.offset, invocation: e.invocation ?? "" };
  });
  return true;
}

/** Runs a change and adds a note if its patch cannot be applied. */
export function attempt(c: Conversation, e: Event, change: () => void): void {
  try {
    change();
  } catch (err) {
    if (!(err instanceof Unpatchable)) throw err;
    c.note(e, "unpatchable");
  }
}

export function planUpdated(_: Conversation, t: ThreadFold, e: Event): boolean {
  const r = read(e);
  const entries = planEntries(r.list("entries"));
  if (!r.ok || !entries) return false;
  setPlan(t, e, entries);
  return true;
}

export function planEntries(list: Json[] | undefined): PlanEntry[] | undefined {
  const out: PlanEntry[] = [];
  for (const one of list ?? []) {
    const r = new Reader(one);
    const entry: PlanEntry = { content: r.str("content") };
    const [status, priority] = [r.str("status"), r.str("priority")];
    if (!r.ok) return undefined;
    if (status) entry.status = status;
    if (priority) entry.priority = priority;
    out.push(entry);
  }
  return list && out;
}

export function setPlan(t: ThreadFold, e: Event, entries: PlanEntry[]): void {
  t.plan = { offset: e.offset, thread: t.name, timestamp: e.timestamp, entries };
  if (e.invocation) t.plan.invocation = e.invocation;
  const run = t.open.get(e.invocation ?? "")?.run;
  if (run) t.plan.status = run.item.status;
}

/**
 * Ends the plan of an invocation. If the run is complete, or waits for an answer,
 * the statuses that the agent reported stay.
 */
export function endPlan(t: ThreadFold, invocation: string, e: Event, status: Status): void {
  const plan = t.plan;
  if ((plan?.invocation ?? "") !== invocation || plan?.status !== "running") return;
  const to = status === "cancelled" || e.type !== "RUN_FINISHED" ? "interrupted" : "in_progress";
  const entries = plan.entries.map((x) => (x.status === "in_progress" ? { ...x, status: to } : x));
  t.plan = { ...plan, status, entries };
}
