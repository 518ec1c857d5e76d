import { folds } from "./folds.ts";
import { foldInput, forkInputs } from "./input.ts";
import { loadThread, merge } from "./merge.ts";
import { bytes, PatchBudget } from "./patch.ts";
import { isObject, Reader, read } from "./read.ts";
import { attemptSuperseded } from "./run.ts";
import { ThreadFold } from "./thread.ts";
import { jumpOf, mainThread, reverts, type Timeline } from "./timeline.ts";
import type { Event, Input, Json, Jump, Note, SessionInfo, Snapshot, State, Status } from "./types.ts";

/** Notes beyond this number are only counted. */
const maxNotes = 100;

/**
 * The fold of a session's events into messages, tool calls, runs, shared state and
 * plan. It gives the same result as the server's (view/conversation.go); both are
 * tested with the same fixtures. It never fails: it skips unknown events and
 * adds a note for malformed ones.
 */
export class Conversation {
  /** Increases with every change. */
  version = 0;
  budget = new PatchBudget();

  private owner: object = {};
  private next = 0; // offset after the last event folded
  private timeline: Timeline | undefined;
  private at = 0;
  private session: SessionInfo = { status: "idle" };
  private initial: { value: Json | undefined; offset: number } = { value: undefined, offset: 0 };
  private threads = new Map<string, ThreadFold>();
  private keepsSettled = false;
  private inputs: readonly Input[] = [];
  private notes: Note[] = [];
  private notesLeftOut = 0;

  /** Offset after the last folded event. */
  get head(): number {
    return this.next;
  }

  /** From now on, settled items are kept, so that snapshots include them. */
  keep(): this {
    this.keepsSettled = true;
    for (const t of this.threads.values()) this.writable(t).keep();
    return this;
  }

  /** Drops the oldest settled items of a thread that has more than twice `kept`. They count as earlier. */
  trim(kept: number): void {
    for (const t of [...this.threads.values()]) {
      if (!t.archive?.exceeds(kept)) continue;
      const own = this.writable(t);
      own.lost += own.archive?.trim(kept, own.past) ?? 0;
      this.version++;
    }
  }

  /**
   * From now on, skips events that are not active as of an offset. The offset must
   * not be below the head; see Timeline.continues. Without a timeline no event is
   * skipped.
   */
  follow(timeline: Timeline | undefined, at: number): void {
    this.timeline = timeline;
    this.at = at;
  }

  /** Moves the head to an offset: the events below it that were not folded are not active. */
  advance(to: number): void {
    this.next = Math.max(this.next, to);
  }

  private isActive(offset: number, thread: string): boolean {
    return this.timeline?.has(offset, thread, this.at) ?? true;
  }

  /** Folds one event. An event below the head is skipped. */
  apply(e: Event): void {
    if (e.offset < this.next) return;
    this.next = e.offset + 1;
    this.version++;
    if (e.channel === "session") {
      this.applySession(e);
      return;
    }
    const thread = e.thread || mainThread;
    if (!this.isActive(e.offset, thread)) return;
    const t = this.thread(thread, e.offset);
    const fold = folds.get(e.type);
    if (fold && !fold(this, t, e)) this.note(e, "malformed");
  }

  note(e: Event, reason: Note["reason"]): void {
    if (this.notes.length === maxNotes) {
      this.notesLeftOut++;
      return;
    }
    const n: Note = { offset: e.offset, thread: e.thread || mainThread, type: e.type, reason };
    if (e.invocation) n.invocation = e.invocation;
    this.notes = [...this.notes, n];
  }

  private thread(name: string, offset: number): ThreadFold {
    let t = this.threads.get(name);
    if (t) {
      t = this.writable(t);
    } else {
      t = new ThreadFold(
        this.owner,
        { name, offset, last_offset: offset, messages: 0, status: "idle" },
        this.firstState(),
      );
      if (this.keepsSettled) t.keep();
      this.threads.set(name, t);
    }
    t.thread.last_offset = offset;
    return t;
  }

  /** The thread, other than `except`, in which an invocation is active. */
  threadOf(invocation: string, except: ThreadFold): string | undefined {
    if (invocation === "") return undefined;
    let name: string | undefined;
    let newest = -1;
    for (const t of this.threads.values()) {
      const run = t.open.get(invocation)?.run;
      if (t.name === except.name || !run || run.item.offset < newest) continue;
      [name, newest] = [t.name, run.item.offset];
    }
    return name;
  }

  private firstState(): ThreadFold["state"] {
    const { value, offset } = this.initial;
    return { value, shared: bytes(value), offset, invocation: "" };
  }

  private writable(t: ThreadFold): ThreadFold {
    if (t.owner === this.owner) return t;
    const own = t.copy(this.owner);
    this.threads.set(t.name, own);
    return own;
  }

  private applySession(e: Event): void {
    switch (e.type) {
      case "session.created": {
        const state = read(e).raw("state");
        if (state !== undefined && state !== null) this.initial = { value: state, offset: e.offset };
        this.describe(e);
        break;
      }
      case "session.imported": // the conversations of agents are elsewhere, or another user's
        for (const t of this.threads.values()) {
          if (t.thread.link) this.writable(t).thread.link = undefined;
        }
        this.describe(e);
        break;
      case "session.renamed":
        this.describe(e);
        break;
      case "session.forked": // the fork of a closed session is not closed
        this.session = { ...this.session, closed: undefined };
        this.interrupt(e);
        this.inputs = forkInputs(this.inputs, e);
        this.describe(e);
        break;
      case "session.rewound":
      case "session.cleared":
      case "session.overwritten":
        this.interrupt(e, jumpOf(e));
        break;
      case "attempt.superseded": {
        const t = this.threads.get(e.thread || mainThread);
        if (!t || !this.isActive(e.offset, t.name)) break;
        if (!attemptSuperseded(this.writable(t), e)) this.note(e, "malformed");
        break;
      }
      case "session.closed":
        this.session = { ...this.session, closed: true };
        break;
      case "input.queued":
      case "input.moved":
      case "input.steered":
      case "input.started":
      case "input.withdrawn": {
        const inputs = foldInput(this.inputs, e);
        if (inputs) this.inputs = inputs;
        else this.note(e, "malformed");
        break;
      }
    }
  }

  private describe(e: Event): void {
    const r = new Reader(e.data);
    const [title, owner, agent, labels] = [r.raw("title"), r.str("owner"), r.str("agent"), r.raw("labels")];
    r.str("title");
    if (!r.ok || !areLabels(labels)) return;
    const s = { ...this.session };
    if (typeof title === "string") s.title = title.toWellFormed() || undefined;
    if (owner) s.owner = owner;
    if (agent) s.agent = agent;
    if (isObject(labels)) s.labels = Object.keys(labels).length > 0 ? (labels as Record<string, string>) : undefined;
    this.session = s;
  }

  /**
   * Interrupts the open runs at a fork or a jump: no agent continues them here.
   * A jump that is not active itself has no effect on that thread.
   */
  private interrupt(e: Event, j?: Jump): void {
    for (const t of [...this.threads.values()]) {
      if ((j && !reverts(j, t.name)) || t.open.size === 0 || !this.isActive(e.offset, t.name)) continue;
      const own = this.writable(t);
      for (const invocation of [...own.open.keys()]) own.end(invocation, e, "interrupted");
    }
  }

  /**
   * The status of the session: running while a run is open, or waiting if it waits for
   * a person; otherwise that of the run that ended last.
   */
  private status(): Status {
    let status: Status = "idle";
    let last = -1;
    let running = false;
    for (const t of this.threads.values()) {
      if (t.waitsForPeople) return "waiting";
      if (t.status === "running") running = true;
      if (t.status === "pending" && last < 0) status = t.status;
      if (t.status !== "idle" && t.status !== "pending" && t.ended > last) [status, last] = [t.status, t.ended];
    }
    return running ? "running" : status;
  }

  /** An independent copy. It is cheap until one of the two changes. */
  clone(): Conversation {
    const c = new Conversation();
    Object.assign(c, this);
    c.threads = new Map(this.threads);
    c.budget = this.budget.clone();
    this.owner = {}; // neither may change the shared threads
    c.owner = {};
    return c;
  }

  /** The conversation now, of one thread or of all. Later events do not change it. */
  snapshot(thread = ""): Snapshot {
    const chosen = [...this.threads.values()].filter((t) => thread === "" || t.name === thread);
    chosen.sort((a, b) => a.thread.offset - b.thread.offset);
    const items = chosen.map((t) => itemsOf(t));
    const s: Snapshot = {
      session: { ...this.session, status: this.status() },
      at: this.next,
      threads: chosen.map((t) => ({ ...t.thread })),
      messages: merge(items.map((i) => i.messages)),
      tool_calls: merge(items.map((i) => i.calls)),
      runs: merge(items.map((i) => i.runs)),
      state: this.stateOf(thread || mainThread),
      plan: this.threads.get(thread || mainThread)?.plan ?? null,
    };
    const permissions = merge(chosen.map((t) => [...t.permissions]));
    if (permissions.length > 0) s.permissions = permissions;
    const inputs = this.inputs.filter((i) => thread === "" || i.thread === thread);
    if (inputs.length > 0) s.inputs = inputs;
    if (thread) s.thread = thread;
    const earlier = chosen.reduce((n, t) => n + (t.archive ? t.lost : t.earlier()), 0);
    if (earlier > 0) s.earlier = earlier;
    const notes = this.notes.filter((n) => thread === "" || n.thread === thread);
    if (notes.length > 0) s.notes = notes;
    if (this.notesLeftOut > 0) s.notes_left_out = this.notesLeftOut;
    return s;
  }

  private stateOf(thread: string): State | null {
    const state = this.threads.get(thread)?.state ?? this.firstState();
    if (state.value === undefined) return null;
    const s: State = { offset: state.offset, thread, value: state.value };
    if (state.invocation) s.invocation = state.invocation;
    return s;
  }

  /**
   * A conversation that continues from a snapshot. Facts that a snapshot leaves out
   * (the groups of earlier messages, the state of other threads) are treated as
   * absent.
   */
  static from(s: Snapshot): Conversation {
    const c = new Conversation();
    c.keepsSettled = true;
    c.next = s.at;
    c.session = s.session;
    c.inputs = s.inputs ?? [];
    c.notes = s.notes ?? [];
    c.notesLeftOut = s.notes_left_out ?? 0;
    for (const thread of s.threads) c.threads.set(thread.name, new ThreadFold(c.owner, { ...thread }, c.firstState()));
    for (const t of c.threads.values()) {
      loadThread(t, s);
      t.keep();
      if (s.state?.thread === t.name) {
        t.state = { value: s.state.value, shared: 0, offset: s.state.offset, invocation: s.state.invocation ?? "" };
      }
      if (s.plan?.thread === t.name) t.plan = s.plan;
    }
    return c;
  }
}

function itemsOf(t: ThreadFold) {
  const past = t.archive?.items(t.past);
  const recent = {
    messages: t.messages.map((m) => m.value()),
    calls: t.calls.map((k) => k.value()),
    runs: t.runs.map((r) => r.value()),
  };
  if (!past) return recent;
  return {
    messages: merge([past.messages, recent.messages]),
    calls: merge([past.calls, recent.calls]),
    runs: merge([past.runs, recent.runs]),
  };
}

function areLabels(v: Json | undefined): boolean {
  if (v === undefined || v === null) return true;
  return isObject(v) && Object.values(v).every((label) => typeof label === "string" || label === null);
}
