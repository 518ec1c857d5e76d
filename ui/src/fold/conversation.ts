import { folds } from "./folds";
import { Lane } from "./lane";
import { merge, recent } from "./merge";
import { bytes, Purse } from "./patch";
import { isObject, Reader, read } from "./read";
import { jumpOf, mainThread, type Timeline, takes } from "./timeline";
import type { Event, Json, Jump, Note, SessionInfo, Snapshot, State, Status } from "./types";

/** How many notes are kept; those after it are counted. */
const maxNotes = 100;

/**
 * The fold of a session's events into messages, tool calls, runs, shared state and
 * plan: the same as the server's, see view/conversation.go, and held to it by the
 * same fixtures. It never fails: what it does not know it passes over, and what it
 * cannot make sense of it notes.
 */
export class Conversation {
  /** Counts what changed it. */
  version = 0;
  purse = new Purse();

  private owner: object = {};
  private next = 0; // offset after the last event folded
  private timeline: Timeline | undefined;
  private at = 0;
  private session: SessionInfo = { status: "idle" };
  private initial: { value: Json | undefined; offset: number } = { value: undefined, offset: 0 };
  private lanes = new Map<string, Lane>();
  private keeps = false;
  private notes: Note[] = [];
  private unnoted = 0;

  /** Offset after the last event that was folded. */
  get head(): number {
    return this.next;
  }

  /** Makes it keep what settles from now on, for snapshots to show it. */
  keep(): this {
    this.keeps = true;
    for (const l of this.lanes.values()) this.writable(l).keep();
    return this;
  }

  /** Lets the oldest of what it keeps go, once there is twice as much of it as is to be kept; it counts as earlier. */
  trim(kept: number): void {
    for (const l of [...this.lanes.values()]) {
      if (!l.archive?.exceeds(kept)) continue;
      const own = this.writable(l);
      own.lost += own.archive?.trim(kept, own.past) ?? 0;
      this.version++;
    }
  }

  /**
   * Makes it pass over what is not in force as of an offset, which is not below
   * what was folded already; see Timeline.continues. Without a timeline it passes
   * over nothing.
   */
  follow(timeline: Timeline | undefined, at: number): void {
    this.timeline = timeline;
    this.at = at;
  }

  /** Says that the events below an offset, as far as they were not folded, are not in force. */
  advance(to: number): void {
    this.next = Math.max(this.next, to);
  }

  private inForce(offset: number, thread: string): boolean {
    return this.timeline?.has(offset, thread, this.at) ?? true;
  }

  /** Folds one event. One that was folded before is passed over. */
  apply(e: Event): void {
    if (e.offset < this.next) return;
    this.next = e.offset + 1;
    this.version++;
    if (e.channel === "session") {
      this.applySession(e);
      return;
    }
    const thread = e.thread || mainThread;
    if (!this.inForce(e.offset, thread)) return;
    const l = this.lane(thread, e.offset);
    const fold = folds.get(e.type);
    if (fold && !fold(this, l, e)) this.note(e, "malformed");
  }

  note(e: Event, reason: Note["reason"]): void {
    if (this.notes.length === maxNotes) {
      this.unnoted++;
      return;
    }
    const n: Note = { offset: e.offset, thread: e.thread || mainThread, type: e.type, reason };
    if (e.invocation) n.invocation = e.invocation;
    this.notes = [...this.notes, n];
  }

  private lane(name: string, offset: number): Lane {
    let l = this.lanes.get(name);
    if (l) {
      l = this.writable(l);
    } else {
      l = new Lane(this.owner, { name, offset, last_offset: offset, messages: 0, status: "idle" }, this.firstState());
      if (this.keeps) l.keep();
      this.lanes.set(name, l);
    }
    l.thread.last_offset = offset;
    return l;
  }

  /** The thread in which an invocation is under way, other than that of a lane. */
  threadOf(invocation: string, not: Lane): string | undefined {
    if (invocation === "") return undefined;
    let name: string | undefined;
    let newest = -1;
    for (const l of this.lanes.values()) {
      const run = l.open.get(invocation)?.run;
      if (l.name === not.name || !run || run.item.offset < newest) continue;
      [name, newest] = [l.name, run.item.offset];
    }
    return name;
  }

  private firstState(): Lane["state"] {
    const { value, offset } = this.initial;
    return { value, shared: bytes(value), offset, invocation: "" };
  }

  private writable(l: Lane): Lane {
    if (l.owner === this.owner) return l;
    const own = l.copy(this.owner);
    this.lanes.set(l.name, own);
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
      case "session.renamed":
      case "session.imported":
        this.describe(e);
        break;
      case "session.forked": // the parent's end is not the fork's
        this.session = { ...this.session, closed: undefined };
        this.interrupt(e);
        this.describe(e);
        break;
      case "session.rewound":
      case "session.cleared":
      case "session.overwritten":
        this.interrupt(e, jumpOf(e));
        break;
      case "session.closed":
        this.session = { ...this.session, closed: true };
        break;
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
   * Ends what is open where a fork or a jump has left it: nobody will go on with
   * it here. A jump that is not in force itself has never been, for that thread.
   */
  private interrupt(e: Event, j?: Jump): void {
    for (const l of [...this.lanes.values()]) {
      if ((j && !takes(j, l.name)) || l.open.size === 0 || !this.inForce(e.offset, l.name)) continue;
      const own = this.writable(l);
      for (const invocation of [...own.open.keys()]) own.end(invocation, e, "interrupted");
    }
  }

  /** What the runs amount to: running while one is open, otherwise as the one that ended last. */
  private status(): Status {
    let status: Status = "idle";
    let last = -1;
    for (const l of this.lanes.values()) {
      if (l.status === "running") return "running";
      if (l.status === "pending" && last < 0) status = l.status;
      if (l.status !== "idle" && l.status !== "pending" && l.ended > last) [status, last] = [l.status, l.ended];
    }
    return status;
  }

  /** A copy that goes on by itself. It costs little until it does. */
  clone(): Conversation {
    const c = new Conversation();
    Object.assign(c, this);
    c.lanes = new Map(this.lanes);
    c.purse = this.purse.clone();
    this.owner = {}; // neither may change what both have
    c.owner = {};
    return c;
  }

  /** The conversation as it stands, of one thread, or of all. It does not change when this goes on. */
  snapshot(thread = ""): Snapshot {
    const lanes = [...this.lanes.values()].filter((l) => thread === "" || l.name === thread);
    lanes.sort((a, b) => a.thread.offset - b.thread.offset);
    const items = lanes.map((l) => itemsOf(l));
    const s: Snapshot = {
      session: { ...this.session, status: this.status() },
      at: this.next,
      threads: lanes.map((l) => ({ ...l.thread })),
      messages: merge(items.map((i) => i.messages)),
      tool_calls: merge(items.map((i) => i.calls)),
      runs: merge(items.map((i) => i.runs)),
      state: this.stateOf(thread || mainThread),
      plan: this.lanes.get(thread || mainThread)?.plan ?? null,
    };
    const permissions = merge(lanes.map((l) => [...l.permissions]));
    if (permissions.length > 0) s.permissions = permissions;
    if (thread) s.thread = thread;
    const earlier = lanes.reduce((n, l) => n + (l.archive ? l.lost : l.earlier()), 0);
    if (earlier > 0) s.earlier = earlier;
    const notes = this.notes.filter((n) => thread === "" || n.thread === thread);
    if (notes.length > 0) s.notes = notes;
    if (this.unnoted > 0) s.notes_left_out = this.unnoted;
    return s;
  }

  private stateOf(thread: string): State | null {
    const state = this.lanes.get(thread)?.state ?? this.firstState();
    if (state.value === undefined) return null;
    const s: State = { offset: state.offset, thread, value: state.value };
    if (state.invocation) s.invocation = state.invocation;
    return s;
  }

  /**
   * A conversation that goes on from a snapshot. What a snapshot does not tell
   * (how messages were grouped that are not in it, the state of other threads)
   * is as if it had not been.
   */
  static from(s: Snapshot): Conversation {
    const c = new Conversation();
    c.keeps = true;
    c.next = s.at;
    c.session = s.session;
    c.notes = s.notes ?? [];
    c.unnoted = s.notes_left_out ?? 0;
    for (const thread of s.threads) c.lanes.set(thread.name, new Lane(c.owner, { ...thread }, c.firstState()));
    for (const l of c.lanes.values()) {
      recent(l, s);
      l.keep();
      if (s.state?.thread === l.name) {
        l.state = { value: s.state.value, shared: 0, offset: s.state.offset, invocation: s.state.invocation ?? "" };
      }
      if (s.plan?.thread === l.name) l.plan = s.plan;
    }
    return c;
  }
}

function itemsOf(l: Lane) {
  const past = l.archive?.items(l.past);
  const hand = {
    messages: l.messages.map((m) => m.value()),
    calls: l.calls.map((k) => k.value()),
    runs: l.runs.map((r) => r.value()),
  };
  if (!past) return hand;
  return {
    messages: merge([past.messages, hand.messages]),
    calls: merge([past.calls, hand.calls]),
    runs: merge([past.runs, hand.runs]),
  };
}

function areLabels(v: Json | undefined): boolean {
  if (v === undefined || v === null) return true;
  return isObject(v) && Object.values(v).every((label) => typeof label === "string" || label === null);
}
