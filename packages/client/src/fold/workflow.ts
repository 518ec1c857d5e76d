import { read } from "./read.ts";
import { jumpOf, mainThread, reverts } from "./timeline.ts";
import type { Event } from "./types.ts";
import { given, maxEnded, type Open, WorkflowState } from "./workflow-state.ts";
import type { Status, WorkflowActivation, WorkflowView, WorkflowWait } from "./workflow-types.ts";

/**
 * Folds the events of the newest workflow of a thread, as view/workflow_fold.go does. Apply all
 * events of the log that are active, in their order; it ignores those of others.
 */
export class WorkflowFold extends WorkflowState {
  private thread: string;
  private readonly fixed: boolean;

  /** Without a thread it is the main thread if that has a workflow, otherwise the first thread that has one. */
  constructor(thread = "") {
    super();
    this.thread = thread;
    this.fixed = thread !== "";
  }

  clone(): WorkflowFold {
    const c = new WorkflowFold();
    return Object.assign(c, {
      thread: this.thread,
      fixed: this.fixed,
      head: this.head && structuredClone(this.head),
      open: structuredClone(this.open),
      ended: [...this.ended],
      earlier: this.earlier,
      elements: structuredClone(this.elements),
    });
  }

  apply(e: Event): void {
    if (leaves.has(e.type)) {
      const jump = jumpOf(e);
      if (this.head?.status === "running" && (!jump || reverts(jump, this.thread))) this.head.status = "interrupted";
      return;
    }
    const fold = folds[e.type];
    if (!fold) return;
    const thread = e.thread || mainThread;
    if (e.type === "workflow.started") {
      if (!this.fixed && (this.thread === "" || thread === mainThread)) this.thread = thread;
    } else if (!this.head) return;
    if (thread !== this.thread) return;
    if (e.type === "workflow.started") this.started(e);
    else if (this.head && (e.invocation ?? "") === (this.head.invocation ?? "")) fold.call(this, e, this.head);
  }

  /** The workflow; undefined if there is none. Later events do not change it. */
  workflow(): WorkflowView | undefined {
    if (!this.head) return undefined;
    const w = structuredClone(this.head);
    const status = stopped(w.status);
    w.elements = [...this.elements.values()].map((el) => ({ ...el }));
    const from = Math.max(0, this.ended.length - maxEnded);
    const running = [...this.open.values()].map((a) => shown(a, status));
    w.activations = [...this.ended.slice(from), ...running].sort(
      (a, b) => a.offset - b.offset || (a.id < b.id ? -1 : 1),
    );
    if (this.earlier + from > 0) w.earlier = this.earlier + from;
    if (status) {
      w.tokens = [];
      delete w.waits;
      for (const el of w.elements) {
        if (!el.open) continue;
        el.status = status;
        delete el.open;
      }
    }
    return w;
  }

  private started(e: Event): void {
    const r = read(e);
    const [process, name, digest, xml] = ["process", "name", "digest", "xml"].map((m) => r.str(m));
    const starts = r.strings("starts");
    const [variables, agents, resumes] = [r.object("variables"), r.object("agents"), r.str("resumes")];
    if (!r.ok) return;
    if (resumes && this.head) {
      this.resumed(e, this.head);
      return;
    }
    this.open = new Map();
    this.elements = new Map();
    this.ended = [];
    this.earlier = 0;
    this.head = {
      offset: e.offset,
      thread: this.thread,
      digest: digest ?? "",
      status: "running",
      started_at: e.timestamp,
      variables: { ...variables },
      elements: [],
      flows: {},
      activations: [],
      tokens: [],
      ...given({ invocation: e.invocation, process, name, xml }),
    };
    if (agents && Object.keys(agents).length > 0) this.head.agents = agents as Record<string, string>;
    for (const element of starts) this.put({ element });
  }

  private resumed(e: Event, w: WorkflowView): void {
    w.invocation = e.invocation ?? "";
    w.status = "running";
    for (const name of ["ended_at", "outcome", "message", "code", "element"] as const) delete w[name];
  }

  entered(e: Event): void {
    const r = read(e);
    const [element, id, scope, name, type] = ["element", "activation", "scope", "name", "elementType"].map((m) =>
      r.str(m),
    );
    const [starts, thread, attempt] = [r.strings("starts"), r.str("thread"), r.int("attempt")];
    const [flows, variables, index] = [r.strings("flows"), r.object("variables"), r.optionalInt("index")];
    const [items, compensates] = [r.raw("items"), r.str("compensates")];
    if (!r.ok || !id || element === undefined) return;
    for (const flow of flows) this.take(scope, flow, "");
    if (flows.length === 0 && index === undefined) this.take(scope, "", element);
    const before = this.open.get(id);
    const a: Open = before ?? {
      id,
      element,
      status: "active",
      offset: e.offset,
      started_at: e.timestamp,
      body: false,
      ...given({ name, type, scope, compensates }),
    };
    if (!before && index !== undefined) a.index = index;
    this.open.set(id, a);
    a.status = "active";
    for (const member of ["code", "message", "waits", "thread", "attempt", "variables", "count"] as const)
      delete a[member];
    Object.assign(a, given({ thread }), attempt ? { attempt } : {});
    if (variables && Object.keys(variables).length > 0) a.variables = { ...variables };
    a.body = items !== undefined;
    if (a.body) a.count = Array.isArray(items) ? items.length : 0;
    for (const start of starts) this.put({ element: start, scope: id });
    this.noteEntered(a, e, before !== undefined);
  }

  waiting(e: Event, w: WorkflowView): void {
    const r = read(e);
    const [element, id, what] = ["element", "activation", "for"].map((m) => r.str(m));
    const texts = Object.fromEntries(waitTexts.map((m) => [m, r.str(m)]));
    const [repeats, within] = [r.int("repeats"), r.bool("within")];
    const a = this.open.get(id ?? "");
    if (!r.ok || element === undefined || !what || (id && !a)) return;
    const wait: WorkflowWait = { element, for: what, offset: e.offset, ...given(texts) };
    if (within) wait.within = true;
    if (repeats) wait.repeats = repeats;
    const at = a ?? w;
    at.waits = [...(at.waits ?? []).filter((old) => old.element !== element), wait];
    if (a && ((a.element === element && what !== "agent") || a.type === gateway)) this.setStatus(a, "waiting", e);
  }

  caught(e: Event, w: WorkflowView): void {
    const r = read(e);
    const [element, id] = [r.str("element"), r.str("activation")];
    const [within, interrupts, received] = [r.bool("within"), r.bool("interrupts"), r.optionalInt("received")];
    const [by, sender, due, repeats] = [r.str("by"), r.str("sender"), r.str("due"), r.int("repeats")];
    const a = this.open.get(id);
    if (!r.ok || (id !== "" && !a)) return;
    if ((received !== undefined || sender) && w.messages) {
      w.messages = w.messages.filter(
        (m) => (m.sender ?? "") !== sender || (received !== undefined && m.offset !== received),
      );
      if (w.messages.length === 0) delete w.messages;
    }
    const own = a !== undefined && !within && (a.element === element || a.type === gateway);
    if (own || interrupts || by === "timer") endWait(a ?? w, element, due, repeats);
    if (a && a.element === element && !within) {
      this.setStatus(a, "active", e);
      return;
    }
    let scope = id;
    if (within) {
      if (interrupts) {
        this.empty(scope, e);
        dropWaits(a ?? w, (wait) => wait.within === true); // no other event sub-process begins after it
      }
    } else if (a) {
      scope = a.scope ?? "";
      if (interrupts)
        this.end(a, a.status === "failed" ? "failed" : a.type === gateway ? "completed" : "interrupted", e);
    }
    this.put({ element, scope });
  }

  left(e: Event, w: WorkflowView): void {
    const r = read(e);
    const id = r.str("activation");
    const [flows, targets, variables] = [r.strings("flows"), r.strings("targets"), r.object("variables")];
    const terminates = r.bool("terminates");
    r.str("element");
    r.bool("compensable"); // what a runner needs
    const a = this.open.get(id);
    if (!r.ok || !a) return;
    const scope = a.scope ?? "";
    this.end(a, "completed", e);
    this.set(w, scope, variables);
    if (terminates) this.empty(scope, e);
    for (const element of targets) this.put({ element, scope });
    for (const flow of flows) {
      w.flows[flow] = (w.flows[flow] ?? 0) + 1;
      this.put({ flow, scope });
    }
  }

  failed(e: Event): void {
    const r = read(e);
    const [id, code, message] = ["activation", "code", "message"].map((m) => r.str(m));
    const a = this.open.get(id ?? "");
    if (!r.ok || !a) return;
    delete a.waits;
    Object.assign(a, given({ code, message }));
    this.setStatus(a, "failed", e);
    const el = this.elements.get(a.element);
    if (el && !a.body) el.failed = (el.failed ?? 0) + 1;
  }

  variables(e: Event, w: WorkflowView): void {
    const r = read(e);
    const [scope, values] = [r.str("scope"), r.object("variables")];
    if (r.ok) this.set(w, scope, values);
  }

  message(e: Event, w: WorkflowView): void {
    const r = read(e);
    const [name, correlation, variables] = [r.str("name"), r.str("correlation"), r.object("variables")];
    const sender = r.str("activation");
    if (!r.ok || name === "") return;
    const m = { offset: e.offset, name, ...given({ correlation, sender }) };
    const more = variables && Object.keys(variables).length > 0 ? { variables } : {};
    w.messages = [...(w.messages ?? []), { ...m, ...more }];
  }

  finished(e: Event, w: WorkflowView): void {
    const r = read(e);
    const [outcome, message, code, element] = ["outcome", "message", "code", "element"].map((m) => r.str(m));
    if (!r.ok) return;
    w.outcome = outcome || "completed";
    for (const name of ["message", "code", "element"] as const) delete w[name];
    Object.assign(w, given({ message, code, element }), { ended_at: e.timestamp });
    w.status = w.outcome === "failed" || w.outcome === "cancelled" ? w.outcome : "complete";
  }

  runEnded(e: Event, w: WorkflowView): void {
    if (e.invocation !== w.invocation || w.status !== "running") return;
    const r = read(e);
    const code = r.str("code");
    w.ended_at = e.timestamp;
    if (e.type === "RUN_FINISHED") {
      const cancelled = r.sub("outcome").str("type") === "cancelled";
      w.status = cancelled ? "cancelled" : "complete";
      w.outcome = cancelled ? "cancelled" : "completed";
    } else if (code === "interrupted_by_restart" || code === "lease_expired") {
      w.status = "interrupted";
      delete w.ended_at;
    } else {
      w.status = w.outcome = "failed";
      Object.assign(w, given({ message: r.str("message"), code }));
    }
  }
}

/** After these an open run does not continue: that of a parent in its fork, and that before a jump. */
const leaves = new Set(["session.forked", "session.rewound", "session.cleared", "session.overwritten"]);

const gateway = "eventBasedGateway";
const waitTexts = ["due", "message", "correlation", "signal", "permission", "agent"];

type Fold = (this: WorkflowFold, e: Event, w: WorkflowView) => void;

const folds: Record<string, Fold | undefined> = {
  "workflow.started": () => undefined,
  "workflow.entered": WorkflowFold.prototype.entered,
  "workflow.waiting": WorkflowFold.prototype.waiting,
  "workflow.caught": WorkflowFold.prototype.caught,
  "workflow.left": WorkflowFold.prototype.left,
  "workflow.failed": WorkflowFold.prototype.failed,
  "workflow.variables": WorkflowFold.prototype.variables,
  "workflow.message": WorkflowFold.prototype.message,
  "workflow.ended": WorkflowFold.prototype.finished,
  RUN_FINISHED: WorkflowFold.prototype.runEnded,
  RUN_ERROR: WorkflowFold.prototype.runEnded,
};

function dropWaits(at: { waits?: WorkflowWait[] }, drop: (wait: WorkflowWait) => boolean): void {
  const left = (at.waits ?? []).filter((wait) => !drop(wait));
  if (left.length > 0) at.waits = left;
  else delete at.waits;
}

/** Ends a wait, or makes its timer due again. */
function endWait(at: { waits?: WorkflowWait[] }, element: string, due: string, repeats: number): void {
  const again = (wait: WorkflowWait): WorkflowWait => {
    const { repeats: _, ...out } = { ...wait, due };
    return repeats ? { ...out, repeats } : out;
  };
  const waits = at.waits ?? [];
  const left = due
    ? waits.map((wait) => (wait.element === element ? again(wait) : wait))
    : waits.filter((wait) => wait.element !== element);
  if (left.length > 0) at.waits = left;
  else delete at.waits;
}

/** The status of open activations in a workflow that does not run; "" if it runs. */
function stopped(status: Status): string {
  if (status === "running") return "";
  return status === "interrupted" || status === "failed" ? "interrupted" : "cancelled";
}

function shown(a: Open, status: string): WorkflowActivation {
  const { body: _, ...out } = structuredClone(a);
  if (!status) return out;
  delete out.waits;
  return out.status === "failed" ? out : { ...out, status };
}
