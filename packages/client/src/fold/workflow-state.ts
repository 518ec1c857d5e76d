import type { Event, Json, JsonObject } from "./types.ts";
import type { WorkflowActivation, WorkflowElement, WorkflowToken, WorkflowView } from "./workflow-types.ts";

/** How many ended activations a workflow has. */
export const maxEnded = 1000;

/** An open activation: what the view shows of it, and what the fold needs. */
export interface Open extends WorkflowActivation {
  body: boolean; // of a loop or a multi-instance element: its instances are in it
}

/**
 * What is in the scopes of a process: tokens, activations and variables, as view/workflow_scope.go
 * and view/workflow_activation.go keep them.
 */
export class WorkflowState {
  protected head: WorkflowView | undefined;
  protected open = new Map<string, Open>();
  protected ended: WorkflowActivation[] = [];
  protected earlier = 0;
  protected elements = new Map<string, WorkflowElement>();

  protected noteEntered(a: Open, e: Event, again: boolean): void {
    let el = this.elements.get(a.element);
    if (!el) {
      el = { element: a.element, status: "", entered: 0, left: 0, offset: 0, ...given({ name: a.name, type: a.type }) };
      this.elements.set(a.element, el);
    }
    el.offset = e.offset;
    el.status = a.status;
    if (a.thread) {
      el.thread = a.thread;
      const most = Math.max(el.attempt ?? 0, a.attempt ?? 0);
      if (most) el.attempt = most;
    }
    if (a.body) return;
    el.entered++;
    if (!again) el.open = (el.open ?? 0) + 1;
  }

  protected setStatus(a: Open, status: string, e: Event): void {
    a.status = status;
    const el = this.elements.get(a.element);
    if (el && !a.body) Object.assign(el, { status, offset: e.offset });
  }

  protected put(t: { flow?: string; element?: string; scope?: string }): void {
    if (t.flow || t.element)
      this.head?.tokens.push(given({ flow: t.flow, element: t.element, scope: t.scope }) as WorkflowToken);
  }

  protected take(scope = "", flow = "", element = ""): void {
    const tokens = this.head?.tokens ?? [];
    const i = tokens.findIndex(
      (t) => (t.scope ?? "") === scope && (t.flow ?? "") === flow && (t.element ?? "") === element,
    );
    if (i >= 0) tokens.splice(i, 1);
  }

  /** Ends an activation and all that is in it. */
  protected end(a: Open, status: string, e: Event): void {
    this.empty(a.id, e);
    this.open.delete(a.id);
    const { body, waits: _, ...out } = a;
    this.ended.push({ ...out, status, end_offset: e.offset, ended_at: e.timestamp });
    if (this.ended.length >= 2 * maxEnded) {
      this.earlier += this.ended.length - maxEnded;
      this.ended = this.ended.slice(-maxEnded);
    }
    const el = this.elements.get(a.element);
    if (!el || body) return;
    el.open = (el.open ?? 0) - 1;
    el.offset = e.offset;
    if (status === "completed") el.left++;
    if (el.open !== 0) return;
    el.status = status;
    delete el.open;
  }

  /** Ends all that is in a scope, inner activations first. */
  protected empty(scope: string, e: Event): void {
    if (!this.head || (scope !== "" && !this.open.has(scope))) return;
    const tokens = this.head.tokens;
    if (tokens.some((t) => (t.scope ?? "") === scope))
      this.head.tokens = tokens.filter((t) => (t.scope ?? "") !== scope);
    const inside = [...this.open.values()].filter((a) => (a.scope ?? "") === scope);
    inside.sort((a, b) => a.offset - b.offset || (a.id < b.id ? -1 : 1));
    for (const a of inside) this.end(a, "interrupted", e);
  }

  /** Sets variables: each in the nearest scope that has it, up to the next call activity. */
  protected set(w: WorkflowView, scope: string, values: JsonObject | undefined): void {
    for (const [name, value] of Object.entries(values ?? {}))
      if (value !== undefined) define(this.place(w, scope, name), name, value);
  }

  protected place(w: WorkflowView, scope: string, name: string): JsonObject {
    for (let a = this.open.get(scope); a; a = this.open.get(a.scope ?? "")) {
      if (a.variables && Object.hasOwn(a.variables, name)) return a.variables;
      if (a.type === "callActivity" && !a.body) {
        a.variables ??= {};
        return a.variables;
      }
    }
    return w.variables;
  }
}

/** Sets an own member, also if its name is __proto__. */
function define(o: JsonObject, name: string, value: Json): void {
  Object.defineProperty(o, name, { value, enumerable: true, writable: true, configurable: true });
}

/** The members that are not empty. */
export function given(members: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(Object.entries(members).filter((m): m is [string, string] => !!m[1]));
}
