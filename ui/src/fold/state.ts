import type { Conversation } from "./conversation";
import type { Lane } from "./lane";
import { patch, Unpatchable } from "./patch";
import { Reader, read } from "./read";
import type { Event, Json, PlanEntry, Status } from "./types";

export function stateSnapshot(_: Conversation, l: Lane, e: Event): boolean {
  const r = read(e);
  const value = r.raw("snapshot");
  if (!r.ok || value === undefined) return false;
  l.state = { value, shared: 0, offset: e.offset, invocation: e.invocation ?? "" };
  return true;
}

export function stateDelta(c: Conversation, l: Lane, e: Event): boolean {
  const r = read(e);
  if (!r.ok) return false;
  attempt(c, e, () => {
    if (l.state.shared > 0) c.purse.spend(l.state.shared); // there may be any number of threads
    l.state = { ...l.state, shared: 0 };
    const value = patch(l.state.value === undefined ? {} : l.state.value, r.raw("delta"), c.purse);
    l.state = { value, shared: 0, offset: e.offset, invocation: e.invocation ?? "" };
  });
  return true;
}

/** Notes what cannot be patched. */
export function attempt(c: Conversation, e: Event, change: () => void): void {
  try {
    change();
  } catch (err) {
    if (!(err instanceof Unpatchable)) throw err;
    c.note(e, "unpatchable");
  }
}

export function planUpdated(_: Conversation, l: Lane, e: Event): boolean {
  const r = read(e);
  const entries = planEntries(r.list("entries"));
  if (!r.ok || !entries) return false;
  setPlan(l, e, entries);
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

export function setPlan(l: Lane, e: Event, entries: PlanEntry[]): void {
  l.plan = { offset: e.offset, thread: l.name, timestamp: e.timestamp, entries };
  if (e.invocation) l.plan.invocation = e.invocation;
  const run = l.open.get(e.invocation ?? "")?.run;
  if (run) l.plan.status = run.item.status;
}

/**
 * Ends the plan of an invocation. Of a run that is complete, or waits for an answer,
 * the agent's own word stays.
 */
export function endPlan(l: Lane, invocation: string, e: Event, status: Status): void {
  const plan = l.plan;
  if ((plan?.invocation ?? "") !== invocation || plan?.status !== "running") return;
  const to = status === "cancelled" || e.type !== "RUN_FINISHED" ? "interrupted" : "in_progress";
  const entries = plan.entries.map((x) => (x.status === "in_progress" ? { ...x, status: to } : x));
  l.plan = { ...plan, status, entries };
}
