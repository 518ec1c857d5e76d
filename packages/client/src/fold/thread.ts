import { Archive, type Past } from "./archive.ts";
import { type CallRec, ended, type MessageRec, type RunRec } from "./record.ts";
import { endPlan } from "./state.ts";
import type { Event, Json, Permission, Plan, Status, Thread } from "./types.ts";

/** How many messages, tool calls and runs of each thread stay changeable; the same as in Go. */
export const window = 128;

/** The limit of changeable items when none of them ends. */
export const maxOpen = 4 * window;

/** Number of message groups. A MESSAGES_SNAPSHOT restates a group as a whole. */
export const groups = 3;

export function groupOf(role: string): number {
  if (role === "reasoning") return 1;
  return role === "activity" ? 2 : 0;
}

/** The kind of what an agent was told: by people, programs and tools. The other kinds are the groups of its own messages. */
export const told = groups;

/**
 * The name by which a message is looked up. The id alone is not enough: agents answer
 * under the id of the message that they were sent, and use one id for reasoning and text.
 */
export const nameOf = (role: string, id: string): string => named(kindOf(role), id);

export function kindOf(role: string): number {
  const g = groupOf(role);
  return g !== 0 || role === "assistant" ? g : told;
}

export function named(kind: number, id: string): string {
  return `${kind}${id}`;
}

/** The open run, messages and tool calls of an invocation in a thread. */
export interface Work {
  run: RunRec | undefined; // undefined before RUN_STARTED
  messages: Set<MessageRec>;
  calls: Set<CallRec>;
}

export interface ThreadState {
  value: Json | undefined; // undefined for none
  shared: number; // bytes of the initial state, shared by all threads; 0 once the thread has its own state
  offset: number;
  invocation: string;
}

/**
 * The fold of one thread. Ids of messages and calls are looked up in their own
 * thread only: two agents that work in parallel may use the same ids.
 */
export class ThreadFold {
  owner: object; // identifies the conversation that may change it
  thread: Thread;
  messages: MessageRec[] = [];
  calls: CallRec[] = [];
  runs: RunRec[] = [];
  message = new Map<string, MessageRec>(); // by name; the newest with this name
  call = new Map<string, CallRec>();
  groups: MessageRec[][] = [[], [], []];
  open = new Map<string, Work>(); // by invocation
  past: Past[] = [
    { count: 0, floor: 0 },
    { count: 0, floor: 0 },
    { count: 0, floor: 0 },
  ];
  ended = 0; // offset of the newest RUN_FINISHED or RUN_ERROR
  restating = false; // inside a MESSAGES_SNAPSHOT: nothing settles until it is done
  state: ThreadState;
  plan: Plan | undefined;
  permissions: readonly Permission[] = [];
  archive: Archive | undefined; // the settled items, if they are kept
  lost = 0; // settled messages that are not in the archive

  constructor(owner: object, thread: Thread, state: ThreadState) {
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

  /** Whether an open run of the thread has asked a question that is pending. */
  get waitsForPeople(): boolean {
    return this.permissions.some((p) => {
      if (p.status !== "open") return false;
      if (this.open.get(p.invocation ?? "")?.run) return true;
      return !p.invocation && [...this.open.values()].some((w) => w.run !== undefined && w.run.item.offset < p.offset);
    });
  }

  work(invocation: string): Work {
    let w = this.open.get(invocation);
    if (!w) {
      w = { run: undefined, messages: new Set(), calls: new Set() };
      this.open.set(invocation, w);
    }
    return w;
  }

  /** The number of settled messages. */
  earlier(): number {
    return this.past.reduce((n, p) => n + p.count, 0);
  }

  /** Whether a call has no result and its invocation has not ended. */
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
    m.role = role;
    this.index(m);
    this.groups[groupOf(role)]!.push(m);
  }

  /** Adds the name of m to the index. */
  index(m: MessageRec): void {
    if (m.id !== "") this.message.set(nameOf(m.role, m.id), m);
  }

  /** Removes the name of m from the index. */
  dropId(m: MessageRec): void {
    const name = nameOf(m.role, m.id);
    if (this.message.get(name) === m) this.message.delete(name);
  }

  /** The message that makes a call by its id: one of the agent, if it has one. */
  maker(id: string): MessageRec | undefined {
    for (let kind = 0; kind <= told; kind++) {
      const m = this.message.get(named(kind, id));
      if (m) return m;
    }
    return undefined;
  }

  /** Removes a message and its calls from the conversation. */
  drop(m: MessageRec): void {
    m.gone = true;
    this.thread.messages--;
    this.dropId(m);
    this.open.get(m.invocation)?.messages.delete(m);
    for (const k of m.calls) if (!k.gone && k.maker === m) this.dropCall(k);
  }

  dropCall(k: CallRec): void {
    k.gone = true;
    if (this.call.get(k.id) === k) this.call.delete(k.id);
    this.open.get(k.invocation)?.calls.delete(k);
  }

  /** Removes the dropped messages and calls from the lists. */
  sweep(): void {
    this.messages = this.messages.filter((m) => !m.gone);
    this.calls = this.calls.filter((k) => !k.gone);
  }

  /**
   * Ends an invocation with e: its run, and the messages and calls still open. A
   * client may have to answer a tool call: when the run is complete, or waits, the
   * open call is pending.
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
    if (status === "failed") status = "interrupted"; // the open items of a failed run did not fail themselves
    const waits = e.type === "RUN_FINISHED" && status !== "cancelled";
    this.cancelPermissions(invocation, w.run?.item.offset, e);
    for (const m of w.messages) m.end(e, status);
    for (const k of w.calls) {
      if (waits) k.status("pending");
      else k.end(e, status);
    }
  }

  /**
   * Cancels the unanswered permission requests of a run. A request that names no
   * invocation belongs to the run that was open on its thread.
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
      this.dropId(m);
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

  /** An independent copy. */
  copy(owner: object): ThreadFold {
    const t = new ThreadFold(owner, { ...this.thread }, this.state);
    const messages = new Map<MessageRec, MessageRec>();
    const calls = new Map<CallRec, CallRec>();
    const runs = new Map<RunRec, RunRec>();
    const message = (m: MessageRec) => messages.get(m) ?? put(messages, m, m.copy());
    const call = (k: CallRec) => calls.get(k) ?? put(calls, k, k.copy());
    t.messages = this.messages.map(message);
    t.calls = this.calls.map(call);
    t.runs = this.runs.map((r) => put(runs, r, r.copy()));
    t.message = new Map([...this.message].map(([id, m]) => [id, message(m)]));
    t.call = new Map([...this.call].map(([id, k]) => [id, call(k)]));
    t.groups = this.groups.map((g) => g.map(message));
    for (const [id, w] of this.open) {
      const run = w.run && (runs.get(w.run) ?? w.run.copy());
      t.open.set(id, { run, messages: new Set([...w.messages].map(message)), calls: new Set([...w.calls].map(call)) });
    }
    for (const k of calls.values()) if (k.maker) k.maker = message(k.maker);
    for (const m of messages.values()) m.calls = m.calls.filter((k) => !k.gone).map(call);
    t.past = this.past.map((p) => ({ ...p }));
    t.ended = this.ended;
    t.plan = this.plan;
    t.permissions = this.permissions;
    t.archive = this.archive?.copy();
    t.lost = this.lost;
    return t;
  }

  /** From now on, settled items are kept. */
  keep(): void {
    this.archive ??= new Archive();
  }
}

function put<T>(map: Map<T, T>, from: T, to: T): T {
  map.set(from, to);
  return to;
}

/** The index of the oldest item that may settle; of the oldest item if too many may not; -1 for none. */
function oldest<T>(items: T[], maySettle: (item: T) => boolean): number {
  const i = items.findIndex(maySettle);
  return i >= 0 || items.length <= maxOpen ? i : 0;
}

function remove<T>(list: T[], item: T): void {
  const i = list.indexOf(item);
  if (i >= 0) list.splice(i, 1);
}
