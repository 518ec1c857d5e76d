import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { EventsQuery } from "../api.ts";
import { jumpOf, mainThread, Timeline } from "../fold/timeline.ts";
import type { Event, JsonObject } from "../fold/types.ts";
import { WorkflowFold } from "../fold/workflow.ts";
import type { WorkflowView } from "../fold/workflow-types.ts";
import { rewound, time } from "./fake.ts";
import { WorkflowLog } from "./workflow.ts";

/** A fake server with these events, some of which are in memory. It searches a fixed number for each page. */
function world(events: Event[], inMemory: (offset: number) => boolean = () => false, searched = 20) {
  const asked: number[] = [];
  const source = {
    event: (offset: number) => (inMemory(offset) ? events[offset] : undefined),
    fetch: async ({ from = 0, type }: EventsQuery) => {
      asked.push(from);
      const next = Math.min(events.length, from + searched);
      const some = events.slice(from, next).filter((e) => type?.includes(e.type));
      return { events: some, next, head: events.length, closed: false };
    },
  };
  return { asked, events, log: new WorkflowLog(source) };
}

/** The workflow as of an offset, folded from the start. */
function folded(events: Event[], at: number): WorkflowView | undefined {
  const timeline = new Timeline(events.map(jumpOf).filter((j) => j !== undefined));
  const fold = new WorkflowFold();
  for (const e of events.slice(0, at)) if (timeline.has(e.offset, e.thread || mainThread, at)) fold.apply(e);
  return fold.workflow();
}

const event = (offset: number, type: string, data: JsonObject = {}): Event => ({
  offset,
  type,
  channel: type.startsWith("workflow.") ? "workflow" : "chunks",
  timestamp: time(offset),
  invocation: "i",
  data,
});

/** A workflow whose element `T` is entered and left again and again, with words of its agent in between. */
function rounds(n: number): Event[] {
  const events = [
    event(0, "workflow.started", { process: "P", name: "Rounds", digest: "d", xml: "<x/>", starts: ["T"] }),
  ];
  for (let round = 1; round <= n; round++) {
    const of = { element: "T", activation: String(round) };
    const thread = round === 1 ? "thread_T" : `thread_T_${round}`;
    events.push(event(events.length, "workflow.entered", { ...of, name: "Task", thread, attempt: round }));
    events.push(event(events.length, "acme.word"));
    events.push(event(events.length, "workflow.left", { ...of, targets: ["T"], variables: { round } }));
  }
  return events;
}

const folder = new URL("../../../../view/testdata/workflow/", import.meta.url);
const fixtures = readdirSync(folder).map((name) => ({
  name,
  events: (JSON.parse(readFileSync(new URL(name, folder), "utf8")) as { events: Event[] }).events.map((e, offset) => ({
    ...e,
    offset: e.offset ?? offset,
  })),
}));

describe("the workflow as of an offset", () => {
  it.each(fixtures)("is the fold of the active events, in any order of offsets: $name", async ({ events }) => {
    const all: Event[] = [];
    for (const e of events) {
      while (all.length < e.offset) all.push(event(all.length, "acme.word"));
      all.push(e);
    }
    const { log } = world(all);
    await log.load(all.length);
    const orders = [all.map((_, i) => i + 1), all.map((_, i) => all.length - i), [3, all.length, 1, all.length - 1]];
    for (const at of orders.flat()) expect(log.at(at).workflow, `at ${at}`).toEqual(folded(all, at));
  });

  it("is the same after far seeks over keyframes, with a rewind in the middle", async () => {
    const events = rounds(900); // 2,701 events, 1,801 of the workflow
    events.push(
      rewound(events.length, 1500),
      ...rounds(1)
        .slice(1, 3)
        .map((e, i) => ({ ...e, offset: 2702 + i })),
    );
    const { log } = world(events, () => false, 1000);
    await log.load(events.length);
    for (const at of [2701, 40, 1700, 2702, 1499, 2704, 2000, 2703, 1])
      expect(log.at(at).workflow, `at ${at}`).toEqual(folded(events, at));
  });

  it("stays the same object while only words arrive", async () => {
    const { log } = world(rounds(2));
    await log.load(7);
    expect(log.at(2)).toBe(log.at(3));
    expect(log.at(4)).not.toBe(log.at(3));
  });
});

describe("loading", () => {
  it("takes what is in memory without a request, and asks for the rest without a gap", async () => {
    const w = world(rounds(20), (offset) => offset < 5);
    expect(w.log.ready(5)).toBe(true);
    expect(w.log.ready(61)).toBe(false);
    await w.log.load(61);
    expect(w.asked).toEqual([5, 25, 45]);
    expect(w.log.at(61).workflow?.variables).toEqual({ round: 20 });
  });

  it("follows events as they arrive", async () => {
    const events = rounds(2);
    const later = events.splice(4);
    const w = world(events, () => true);
    expect(w.log.ready(4)).toBe(true);
    expect(w.log.at(4).workflow?.variables).toEqual({ round: 1 });
    events.push(...later);
    expect(w.log.ready(7)).toBe(true);
    expect(w.log.at(7).workflow?.variables).toEqual({ round: 2 });
    expect(w.asked).toEqual([]);
  });

  it("fails if the server does not have the events", async () => {
    const w = world(rounds(1));
    await expect(w.log.load(100)).rejects.toThrow("the server does not have these events");
  });
});

describe("what a jump has reverted", () => {
  const events = rounds(2);
  events.push(rewound(7, 4));

  it("is listed with the offset up to which the session shows it", async () => {
    const { log } = world(events);
    await log.load(8);
    expect(log.at(7).reverted).toEqual([]);
    expect(log.at(8).reverted).toEqual([
      { element: "T", name: "Task", thread: "thread_T_2", attempt: 2, offset: 4, until: 7 },
    ]);
    expect(log.at(log.at(8).reverted[0]!.until).workflow?.elements[0]?.entered).toBe(2);
  });

  it("keeps the diagram of a workflow that was cleared", async () => {
    const cleared = { ...rewound(8, 0), type: "session.cleared" };
    const { log } = world([...events, cleared]);
    await log.load(9);
    const moment = log.at(9);
    expect(moment.workflow).toBeUndefined();
    expect(moment.diagram).toMatchObject({ name: "Rounds", process: "P", xml: "<x/>", thread: "main" });
    expect(moment.reverted.map((r) => r.offset)).toEqual([1, 4]);
  });
});
