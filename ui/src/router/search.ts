/** The search parameters of each page. Others are dropped. */
import type { SessionSort } from "@tapedeck/client";

type Raw = Record<string, unknown>;

function text(v: unknown): string | undefined {
  if (typeof v === "number") return String(v); // the router reads 12 as a number
  return typeof v === "string" && v !== "" ? v : undefined;
}

function offset(v: unknown): number | undefined {
  return typeof v === "number" && Number.isSafeInteger(v) && v >= 0 ? v : undefined;
}

/** The limit of thread panels beside the conversation. */
export const maxPanes = 3;

function names(v: unknown): string[] | undefined {
  const all = (Array.isArray(v) ? v : [v]).map(text).filter((t) => t !== undefined);
  return all.length > 0 ? [...new Set(all)].slice(0, maxPanes) : undefined;
}

export interface ListSearch {
  status?: string;
  agent?: string;
  from?: string;
  to?: string;
  q?: string;
  /** Only these; without it all that are not archived. */
  show?: "starred" | "archived";
  tag?: string;
}

/** The filter of the list, and its view. */
export interface ListPageSearch extends ListSearch {
  view?: "time";
  /** The order of the list; absent for the newest activity first. */
  sort?: SessionSort;
  /** Absent for the usual order of the sort. */
  order?: "asc" | "desc";
  /** The shown range of time, in milliseconds since 1970. */
  t0?: number;
  t1?: number;
}

const sortNames: SessionSort[] = ["created", "activity", "title", "tokens", "cost", "duration", "failures"];

export function listSearch(s: Raw): ListPageSearch {
  const filter = {
    status: text(s.status),
    agent: text(s.agent),
    from: text(s.from),
    to: text(s.to),
    q: text(s.q),
    show: s.show === "starred" || s.show === "archived" ? (s.show as "starred" | "archived") : undefined,
    tag: text(s.tag),
  };
  const sort = sortNames.find((n) => n === s.sort && n !== "activity");
  const order = s.order === "asc" || s.order === "desc" ? (s.order as "asc" | "desc") : undefined;
  if (s.view !== "time") return { ...filter, ...(sort && { sort }), ...(order && { order }) };
  const [t0, t1] = [offset(s.t0), offset(s.t1)];
  return { ...filter, view: "time", ...(t0 !== undefined && t1 !== undefined && t0 < t1 ? { t0, t1 } : {}) };
}

export const views = ["conversation", "workflow", "timing", "events", "terminal", "branches"] as const;
export type View = (typeof views)[number];

export const viewLabels: Record<View, string> = {
  conversation: "Conversation",
  workflow: "Workflow",
  timing: "Timing",
  events: "Events",
  terminal: "Terminal",
  branches: "Branches",
};

export const panels = ["outline", "tools", "changes", "plan", "state", "threads", "summary", "people"] as const;
export type Panel = (typeof panels)[number];

export interface SessionSearch {
  /** The playhead: events before this offset are shown; absent for live. */
  at?: number;
  thread?: string;
  /** The offset of a question to show. */
  ask?: number;
  /** The threads with their own panels. */
  pane?: string[];
  view?: View;
  panel?: Panel;
  channel?: string;
  type?: string;
  q?: string;
  /** The chosen terminal; absent for the last used one. */
  term?: string;
  /** The chosen element of the workflow. */
  task?: string;
}

export function sessionSearch(s: Raw): SessionSearch {
  return {
    at: offset(s.at),
    thread: text(s.thread),
    ask: offset(s.ask),
    pane: names(s.pane),
    view: views.find((v) => v === s.view && v !== "conversation"),
    panel: panels.find((p) => p === s.panel),
    channel: text(s.channel),
    type: text(s.type),
    q: text(s.q),
    term: text(s.term),
    task: text(s.task),
  };
}

export interface CompareSearch {
  a?: string;
  b?: string;
  at_a?: number;
  at_b?: number;
}

export function compareSearch(s: Raw): CompareSearch {
  return { a: text(s.a), b: text(s.b), at_a: offset(s.at_a), at_b: offset(s.at_b) };
}

export interface UsageSearch {
  /** So many days that end today; 0 for all, absent for 30. */
  days?: number;
  agent?: string;
}

export function usageSearch(s: Raw): UsageSearch {
  return { days: offset(s.days), agent: text(s.agent) };
}

/** The stored workflow that the page shows, and its version; absent for the current one. */
export interface WorkflowsSearch {
  name?: string;
  version?: string;
}

export function workflowsSearch(s: Raw): WorkflowsSearch {
  const name = text(s.name);
  return name ? { name, version: text(s.version) } : {};
}
