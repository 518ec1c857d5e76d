import type { EventsPage, EventsQuery } from "../api.ts";
import { isObject } from "../fold/read.ts";
import { jumpOf, mainThread, Timeline } from "../fold/timeline.ts";
import type { Event, JsonObject } from "../fold/types.ts";
import { WorkflowFold } from "../fold/workflow.ts";
import type { WorkflowView } from "../fold/workflow-types.ts";

export interface WorkflowSource {
  /** An event, if it is in memory. */
  event: (offset: number) => Event | undefined;
  /** A page of events from the server. */
  fetch: (q: EventsQuery) => Promise<EventsPage>;
}

/** An element that was entered, until a jump reverted it. */
export interface RevertedActivation {
  element: string;
  name?: string;
  thread?: string;
  attempt?: number;
  offset: number; // of the event that entered it
  until: number; // of the jump: the session as of this offset still shows it
}

/** The diagram of a workflow, and with what it was started. */
export interface StartedDiagram {
  offset: number;
  thread: string;
  name: string;
  process: string;
  digest: string;
  xml: string;
  variables: JsonObject;
  agents: Record<string, string>;
}

/** A workflow as of an offset. */
export interface WorkflowMoment {
  /** Absent if no workflow is active there. */
  workflow?: WorkflowView;
  /** The newest diagram before the offset, also if a jump has reverted its start. */
  diagram?: StartedDiagram;
  reverted: RevertedActivation[];
}

/** Every so many events, a fold is kept to continue from. */
const keyframeEvery = 500;
const keyframesKept = 64;

const wanted = new Set([
  "workflow.started",
  "workflow.entered",
  "workflow.waiting",
  "workflow.caught",
  "workflow.left",
  "workflow.failed",
  "workflow.variables",
  "workflow.message",
  "workflow.ended",
  "RUN_FINISHED",
  "RUN_ERROR",
  "session.forked",
  "session.rewound",
  "session.cleared",
  "session.overwritten",
]);

interface Keyframe {
  at: number; // the fold has the events active as of this offset
  index: number; // of the first event that it does not have
  fold: WorkflowFold;
}

/**
 * The events of a session that change its workflow, and the workflow as of any offset. It
 * needs them from the first on, but they are few: the words of the agents are not among them.
 */
export class WorkflowLog {
  private events: Event[] = [];
  private timeline = new Timeline([]);
  private to = 0; // all events below are known
  private goal = 0;
  private busy: Promise<void> | undefined;
  private keyframes: Keyframe[] = [];
  private current: Keyframe | undefined;
  private shown: { count: number; moment: WorkflowMoment } | undefined;
  private readonly source: WorkflowSource;

  constructor(source: WorkflowSource) {
    this.source = source;
  }

  /** Whether the events before an offset are known. First takes those that the source has in memory. */
  ready(at: number): boolean {
    if (!this.busy) this.takeLoaded(at);
    return at <= this.to;
  }

  /** Loads the events before an offset. If called again while loading, the last offset counts. */
  async load(at: number): Promise<void> {
    this.goal = at;
    this.busy ??= this.loadWanted().finally(() => {
      this.busy = undefined;
    });
    await this.busy;
  }

  private async loadWanted(): Promise<void> {
    for (;;) {
      this.takeLoaded(this.goal);
      if (this.to >= this.goal) return;
      const page = await this.source.fetch({ from: this.to, limit: 1000, type: [...wanted] });
      if (page.next <= this.to) throw new Error("the server does not have these events");
      for (const e of page.events) this.add(e);
      this.to = page.next;
    }
  }

  private takeLoaded(at: number): void {
    while (this.to < at) {
      const e = this.source.event(this.to);
      if (!e) return;
      this.add(e);
      this.to++;
    }
  }

  private add(e: Event): void {
    if (!wanted.has(e.type)) return;
    const jump = jumpOf(e);
    if (jump) this.timeline = this.timeline.with([jump]);
    this.events.push(e);
  }

  /** The workflow as of an offset, which must be ready. It stays the same object until an event changes it. */
  at(at: number): WorkflowMoment {
    const count = this.countBefore(at);
    if (this.shown?.count === count) return this.shown.moment;
    const workflow = this.fold(at, count).workflow();
    const diagram = this.diagramBefore(count, workflow);
    const moment: WorkflowMoment = { reverted: this.revertedBefore(at, count) };
    if (workflow) moment.workflow = workflow;
    if (diagram) moment.diagram = diagram;
    this.shown = { count, moment };
    return moment;
  }

  /** How many of the events are before an offset. */
  private countBefore(at: number): number {
    let low = 0;
    for (let high = this.events.length; low < high; ) {
      const mid = (low + high) >> 1;
      if (this.events[mid]!.offset < at) low = mid + 1;
      else high = mid;
    }
    return low;
  }

  private fold(at: number, count: number): WorkflowFold {
    const k = this.start(at, count);
    const last = this.timeline.before("", at)?.offset ?? -1;
    for (; k.index < count; k.index++) {
      const e = this.events[k.index]!;
      // Before the last jump, the fold is not the workflow as of that offset.
      if (k.index % keyframeEvery === 0 && e.offset > last) this.keep({ at: e.offset, index: k.index, fold: k.fold });
      if (this.timeline.has(e.offset, e.thread || mainThread, at)) k.fold.apply(e);
    }
    k.at = at;
    this.current = k;
    return k.fold;
  }

  /** The nearest fold from which one can continue to an offset: the current one, or a copy of another one. */
  private start(at: number, count: number): Keyframe {
    const fits = (k: Keyframe) => k.at <= at && k.index <= count && this.timeline.continues(k.at, at);
    const near = this.keyframes.findLast(fits);
    const { current } = this;
    if (current && fits(current) && current.index >= (near?.index ?? 0)) return current;
    return near ? { ...near, fold: near.fold.clone() } : { at: 0, index: 0, fold: new WorkflowFold() };
  }

  private keep(k: Keyframe): void {
    if (k.index === 0 || this.keyframes.some((old) => old.index === k.index && old.at === k.at)) return;
    if (this.keyframes.length >= keyframesKept) this.keyframes = this.keyframes.filter((_, i) => i % 2 === 0);
    this.keyframes.push({ ...k, fold: k.fold.clone() });
    this.keyframes.sort((a, b) => a.at - b.at);
  }

  private diagramBefore(count: number, workflow?: WorkflowView): StartedDiagram | undefined {
    const has = (e: Event) =>
      e.type === "workflow.started" &&
      typeof e.data?.xml === "string" &&
      e.data.xml !== "" &&
      (!workflow || workflow.offset === e.offset);
    let i = count - 1;
    while (i >= 0 && !has(this.events[i]!)) i--;
    const e = this.events[i];
    if (!e) return undefined;
    const text = (name: string) => (typeof e.data?.[name] === "string" ? (e.data[name] as string) : "");
    return {
      offset: e.offset,
      thread: e.thread || mainThread,
      name: text("name"),
      process: text("process"),
      digest: text("digest"),
      xml: text("xml"),
      variables: isObject(e.data?.variables) ? e.data.variables : {},
      agents: Object.fromEntries(
        Object.entries(isObject(e.data?.agents) ? e.data.agents : {}).filter(
          (x): x is [string, string] => typeof x[1] === "string",
        ),
      ),
    };
  }

  private revertedBefore(at: number, count: number): RevertedActivation[] {
    const { jumps } = this.timeline;
    if (!jumps.some((j) => j.offset < at)) return [];
    const out: RevertedActivation[] = [];
    for (const e of this.events.slice(0, count)) {
      if (e.type !== "workflow.entered" || typeof e.data?.element !== "string") continue;
      const thread = e.thread || mainThread;
      if (this.timeline.has(e.offset, thread, at)) continue;
      const jump = jumps.find((j) => j.offset > e.offset && !this.timeline.has(e.offset, thread, j.offset + 1));
      const r: RevertedActivation = { element: e.data.element, offset: e.offset, until: jump?.offset ?? at };
      if (typeof e.data.name === "string") r.name = e.data.name;
      if (typeof e.data.thread === "string" && e.data.thread) r.thread = e.data.thread;
      if (typeof e.data.attempt === "number") r.attempt = e.data.attempt;
      out.push(r);
    }
    return out;
  }
}
