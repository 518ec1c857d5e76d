import { Archive, type Past } from "./archive";
import type { CallRec, MessageRec, RunRec } from "./record";
import { ended } from "./record";
import { endPlan } from "./state";
import type { Event, Json, Permission, Plan, Status, Thread } from "./types";

/** How many messages, tool calls and runs a fold keeps at hand in each thread; the same as in Go. */
export const window = 128;

/** The most that is kept at hand if it does not end. */
export const maxOpen = 4 * window;

/** Groups of messages that a MESSAGES_SNAPSHOT restates together. */
export const groups = 3;

export function groupOf(role: string): number {
  if (role === "reasoning") return 1;
  return role === "activity" ? 2 : 0;
}

/** What an invocation has begun in a thread and not ended. */
export interface Work {
  run: RunRec | undefined; // undefined before RUN_STARTED
  messages: Set<MessageRec>;
  calls: Set<CallRec>;
}

export interface LaneState {
  value: Json | undefined; // undefined for none
  shared: number; // bytes of the initial state, which other threads have, too; 0 once it is the thread's own
  offset: number;
  invocation: string;
}

/**
 * The fold of one thread. Ids of messages and calls are looked up in their own
 * thread only: two agents that work side by side may use the same.
 */
export class Lane {
  owner: object; // the conversation that may change it
  thread: Thread;
  messages: MessageRec[] = [];
  calls: CallRec[] = [];
  runs: RunRec[] = [];
  message = new Map<string, MessageRec>(); // by id, the newest of it
  call = new Map<string, CallRec>();
  groups: MessageRec[][] = [[], [], []];
  open = new Map<string, Work>(); // by invocation
  past: Past[] = [
    { count: 0, floor: 0 },
    { count: 0, floor: 0 },
    { count: 0, floor: 0 },
  ];
  ended = 0; // offset of the newest end of a run
  restating = false; // by a MESSAGES_SNAPSHOT: nothing settles before it is through
  state: LaneState;
  plan: Plan | undefined;
  permissions: readonly Permission[] = [];
  archive: Archive | undefined; // what has settled, if it is kept
  lost = 0; // messages that settled before it was kept

  constructor(owner: object, thread: Thread, state: LaneState) {
    this.owner = owner;
    this.thread = thread;
    this.state = state;
  }

  get name(): string {
    return this.thread.name;
  }

  get status(): Status {
    return this.thread.status;
  }

  set status(s: Status) {
    this.thread.status = s;
  }

  work(invocation: string): Work {
    let w = this.open.get(invocation);
    if (!w) {
      w = { run: undefined, messages: new Set(), calls: new Set() };
      this.open.set(invocation, w);
    }
    return w;
  }

  /** How many messages have settled. */
  earlier(): number {
    return this.past.reduce((n, p) => n + p.count, 0);
  }

  /** Whether a call is neither answered nor ended with its invocation. */
  isOpen(k: CallRec): boolean {
    return this.open.get(k.invocation)?.calls.has(k) ?? false;
  }

  /** Whether a message is being streamed. */
  isBusy(m: MessageRec): boolean {
    return this.open.get(m.invocation)?.messages.has(m) ?? false;
  }

  add(m: MessageRec, role: string): void {
    this.messages.push(m);
    this.thread.messages++;
    if (m.id !== "") this.message.set(m.id, m);
    m.role = role;
    this.groups[groupOf(role)]!.push(m);
  }

  /** Changes the role of m, which was added last. */
  setRole(m: MessageRec, role: string): void {
    const [from, to] = [groupOf(m.role), groupOf(role)];
    if (from !== to) {
      this.groups[from]!.pop();
      this.groups[to]!.push(m);
    }
    m.role = role;
  }

  /** Makes the id of m that of no message. */
  forget(m: MessageRec): void {
    if (this.message.get(m.id) === m) this.message.delete(m.id);
  }

  /** Takes a message out of the conversation, with the calls that it made. */
  drop(m: MessageRec): void {
    m.gone = true;
    this.thread.messages--;
    this.forget(m);
    this.open.get(m.invocation)?.messages.delete(m);
    for (const k of m.calls) if (!k.gone && k.maker === m) this.dropCall(k);
  }

  dropCall(k: CallRec): void {
    k.gone = true;
    if (this.call.get(k.id) === k) this.call.delete(k.id);
    this.open.get(k.invocation)?.calls.delete(k);
  }

  /** Forgets what is gone. */
  sweep(): void {
    this.messages = this.messages.filter((m) => !m.gone);
    this.calls = this.calls.filter((k) => !k.gone);
  }

  /**
   * Ends an invocation with e: its run, and what that has left open. An agent may
   * leave a tool call to be answered from outside: when its run is complete, or
   * waits, the call is pending.
   */
  end(invocation: string, e: Event, status: Status): void {
    const w = this.work(invocation);
    this.open.delete(invocation);
    if (w.run) {
      w.run.end(e, status);
      this.status = status;
      this.ended = e.offset;
      endPlan(this, invocation, e, status);
    }
    if (status === "failed") status = "interrupted"; // what a failed run left open did not fail itself
    const waits = e.type === "RUN_FINISHED" && status !== "cancelled";
    this.cancelPermissions(invocation, w.run?.item.offset, e);
    for (const m of w.messages) m.end(e, status);
    for (const k of w.calls) {
      if (waits) k.status("pending");
      else k.end(e, status);
    }
  }

  /**
   * Ends what a run has asked and nobody has answered. A question that names no
   * invocation is of the run that was open on its thread.
   */
  private cancelPermissions(invocation: string, begun: number | undefined, e: Event): void {
    const unnamed = (p: Permission) => !p.invocation && begun !== undefined && p.offset > begun;
    const waits = (p: Permission) => p.status === "open" && ((p.invocation ?? "") === invocation || unnamed(p));
    if (!this.permissions.some(waits)) return;
    this.permissions = this.permissions.map((p) => (waits(p) ? ended(p, e, "cancelled") : p));
  }

  settleMessages(at: number): void {
    while (!this.restating && this.messages.length > window) {
      const i = oldest(this.messages, (m) => !this.isBusy(m));
      if (i < 0) return;
      const m = this.messages.splice(i, 1)[0]!;
      const group = groupOf(m.role);
      m.settled = true;
      this.open.get(m.invocation)?.messages.delete(m);
      this.forget(m);
      remove(this.groups[group]!, m);
      this.past[group]!.count++;
      this.archive?.addMessage(at, group, m.value());
    }
  }

  settleCalls(at: number): void {
    while (!this.restating && this.calls.length > window) {
      const i = oldest(this.calls, (k) => !this.isOpen(k));
      if (i < 0) return;
      const k = this.calls.splice(i, 1)[0]!;
      this.open.get(k.invocation)?.calls.delete(k);
      if (this.call.get(k.id) === k) this.call.delete(k.id);
      if (k.maker) remove(k.maker.calls, k);
      this.archive?.addCall(at, k.maker ? groupOf(k.maker.role) : -1, k.value());
    }
  }

  settleRuns(at: number): void {
    if (this.runs.length <= window) return;
    let i = this.runs.findIndex((r) => r.item.end_offset !== undefined);
    if (i < 0) {
      if (this.runs.length <= maxOpen) return;
      i = 0;
      const first = this.runs[0]!;
      const w = this.open.get(first.invocation);
      if (w?.run === first) w.run = undefined;
    }
    const r = this.runs.splice(i, 1)[0]!;
    this.archive?.addRun(at, r.value());
  }

  /** A copy that changes nothing of this one. */
  copy(owner: object): Lane {
    const l = new Lane(owner, { ...this.thread }, this.state);
    const messages = new Map<MessageRec, MessageRec>();
    const calls = new Map<CallRec, CallRec>();
    const runs = new Map<RunRec, RunRec>();
    const message = (m: MessageRec) => messages.get(m) ?? put(messages, m, m.copy());
    const call = (k: CallRec) => calls.get(k) ?? put(calls, k, k.copy());
    l.messages = this.messages.map(message);
    l.calls = this.calls.map(call);
    l.runs = this.runs.map((r) => put(runs, r, r.copy()));
    l.message = new Map([...this.message].map(([id, m]) => [id, message(m)]));
    l.call = new Map([...this.call].map(([id, k]) => [id, call(k)]));
    l.groups = this.groups.map((g) => g.map(message));
    for (const [id, w] of this.open) {
      const run = w.run && (runs.get(w.run) ?? w.run.copy());
      l.open.set(id, { run, messages: new Set([...w.messages].map(message)), calls: new Set([...w.calls].map(call)) });
    }
    for (const k of calls.values()) if (k.maker) k.maker = message(k.maker);
    for (const m of messages.values()) m.calls = m.calls.filter((k) => !k.gone).map(call);
    l.past = this.past.map((p) => ({ ...p }));
    l.ended = this.ended;
    l.plan = this.plan;
    l.permissions = this.permissions;
    l.archive = this.archive?.copy();
    l.lost = this.lost;
    return l;
  }

  /** Makes it keep what settles from now on. */
  keep(): void {
    this.archive ??= new Archive();
  }
}

function put<T>(map: Map<T, T>, from: T, to: T): T {
  map.set(from, to);
  return to;
}

/** The index of the oldest item that may go; if there are too many that may not, of the oldest one; -1 for none. */
function oldest<T>(items: T[], may: (item: T) => boolean): number {
  const i = items.findIndex(may);
  return i >= 0 || items.length <= maxOpen ? i : 0;
}

function remove<T>(list: T[], item: T): void {
  const i = list.indexOf(item);
  if (i >= 0) list.splice(i, 1);
}
