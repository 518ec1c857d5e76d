// @vitest-environment jsdom
import { readFileSync } from "node:fs";
import type { WorkflowActivation, WorkflowView } from "@tapedeck/client/fold";
import { describe, expect, it } from "vitest";
import { kindOf, modelOf, undrawnText } from "./model";
import { rowsNow } from "./rows";
import { beginOf, countOf, countsOf, elementsNow, openAt, tookMs, waitsFor, waitsOf, waitText } from "./states";
import { questionOf } from "./task-panel";

const triage = readFileSync("../cmd/tapedeck/demo_triage.bpmn", "utf8");
const ns = 'xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"';
const diagram = (inside: string) => `<definitions ${ns}><process id="P">${inside}</process></definitions>`;
const flow = (from: string, to: string) => `<sequenceFlow id="${from}_${to}" sourceRef="${from}" targetRef="${to}"/>`;

describe("the nodes of a diagram", () => {
  it("are in the order in which the process reaches them", () => {
    const { nodes, drawn } = modelOf(triage, "Triage");
    const order = [
      "Reported",
      "Collect",
      "Split",
      "Impact",
      "Remedy",
      "Join",
      "Severe",
      "Decide",
      "Watch",
      "Settled",
      "Watched",
    ];
    expect(nodes.map((n) => n.id)).toEqual(order);
    expect(nodes[1]).toMatchObject({ name: "Collect the facts", type: "serviceTask", depth: 0 });
    expect(drawn).toBe(true);
  });

  it("include those of sub-processes, events at a boundary, cycles, and what nothing leads to", () => {
    const xml = diagram(`
      <task id="alone" name=" Alone
        here "><documentation> Why. </documentation></task>
      <boundaryEvent id="late" attachedToRef="sub"/>
      <subProcess id="sub"><startEvent id="s2"/><task id="t2"/>${flow("s2", "t2")}</subProcess>
      <startEvent id="s"/><endEvent id="e"/><task id="handle"/>
      ${flow("s", "sub")}${flow("sub", "e")}${flow("late", "handle")}${flow("handle", "sub")}`);
    const { nodes, drawn } = modelOf(xml);
    expect(nodes.map((n) => `${n.id}:${n.depth}`)).toEqual([
      "s:0",
      "sub:0",
      "s2:1",
      "t2:1",
      "late:0",
      "e:0",
      "handle:0",
      "alone:0",
    ]);
    expect(nodes.at(-1)).toMatchObject({ name: "Alone here", documentation: "Why." });
    expect(drawn).toBe(false);
  });

  it("are those of the named process, otherwise of the one that can run", () => {
    const xml = `<definitions ${ns}><process id="A"><task id="a"/></process><process id="B" isExecutable="true"><task id="b"/></process></definitions>`;
    expect(modelOf(xml, "A").nodes.map((n) => n.id)).toEqual(["a"]);
    expect(modelOf(xml).nodes.map((n) => n.id)).toEqual(["b"]);
  });

  it.each([
    ["no XML", "hello"],
    ["a cut file", triage.slice(0, 500)],
    ["entities", `<!DOCTYPE x [<!ENTITY a "aaaa">]>${diagram('<task id="t" name="&a;"/>')}`],
    ["another format", "<html><process id='P'/></html>"],
    ["an endless file", `${" ".repeat(9 * 1024 * 1024)}<a/>`],
  ])("are none in %s", (_, xml) => {
    expect(modelOf(xml)).toEqual({ nodes: [], drawn: false });
  });

  it("are drawn, or it is said why not", () => {
    expect(undrawnText(modelOf(triage))).toBeUndefined();
    expect(undrawnText(modelOf("hello"))).toMatch(/cannot be read/);
    expect(undrawnText(modelOf(diagram('<task id="t"/>')))).toMatch(/does not say where/);
    expect(undrawnText({ drawn: false, shapes: 3001 })).toMatch(/it has 3,001 elements.* at most 3,000/);
  });

  it("have kinds that people know", () => {
    expect([kindOf("userTask"), kindOf("startEvent"), kindOf("constructor")]).toEqual([
      "User task",
      "Start",
      "Constructor",
    ]);
  });
});

const active = (
  a: Partial<WorkflowActivation> & { id: string; element: string; offset: number },
): WorkflowActivation => ({
  status: "completed",
  started_at: "2026-01-05T12:00:00Z",
  ...a,
});

const view = (activations: WorkflowActivation[], status: Record<string, string>): WorkflowView => ({
  offset: 1,
  thread: "main",
  digest: "d",
  status: "running",
  started_at: "2026-01-05T12:00:00Z",
  variables: {},
  elements: Object.entries(status).map(([element, s]) => ({ element, status: s, entered: 2, left: 1, offset: 3 })),
  flows: {},
  activations,
  tokens: [],
});

describe("the state of an element", () => {
  const reverted = [{ element: "Impact", offset: 4, until: 9, thread: "thread_Impact" }];
  const workflow = view(
    [active({ id: "2", element: "Collect", offset: 6, thread: "thread_Collect", ended_at: "2026-01-05T12:00:02Z" })],
    { Collect: "completed", Odd: "something new" },
  );
  const now = elementsNow({ workflow, reverted });

  it("is that of the fold, or reverted if only the log has it", () => {
    expect([...now].map(([id, n]) => `${id} ${n.state}`)).toEqual([
      "Impact reverted",
      "Collect completed",
      "Odd active",
    ]);
  });

  it("is in the list, with what the agents said, also of elements that the diagram does not have", () => {
    const counts = countsOf({
      messages: [
        { role: "assistant", text: "a", thread: "thread_Collect" },
        { role: "assistant", text: "", thread: "thread_Collect" },
        { role: "user", text: "b", thread: "thread_Collect" },
      ] as never,
      tool_calls: [{ thread: "thread_Collect" }, { thread: "main" }] as never,
      permissions: [{ thread: "thread_Collect", status: "open" }],
    });
    expect(countOf(now.get("Collect"), counts)).toEqual({ messages: 1, calls: 1, asks: 1 });
    expect(countOf(now.get("Impact"), counts)).toEqual({ messages: 0, calls: 0, asks: 0 });
    const rows = rowsNow({ model: modelOf(triage), agents: new Map([["Remedy", "coder"]]) }, now, counts, []);
    expect(rows.map((r) => `${r.title} ${r.state}${r.isAgent ? " agent" : ""}`)).toEqual([
      "Reported pending",
      "Collect the facts completed agent",
      "Assess the impact reverted agent",
      "Find a remedy pending agent",
      "Severe? pending",
      "Decide what to do pending",
      "Put it on the list pending",
      "Settled pending",
      "Watched pending",
      "Odd active",
    ]);
    expect(rows[1]?.tookMs).toBe(2000);
  });
});

describe("a task that a resume has begun again", () => {
  const a = active({
    id: "2",
    element: "Impact",
    offset: 6,
    thread: "thread_Impact_2",
    attempt: 2,
    ended_at: "2026-01-05T12:23:20Z",
  });
  const run = (thread: string, offset: number, started_at: string) => ({ thread, offset, started_at }) as never;
  const runs = [
    run("thread_Impact", 8, "2026-01-05T12:00:01Z"),
    run("thread_Impact_2", 40, "2026-01-05T12:23:18Z"),
    run("main", 41, "2026-01-05T12:23:19Z"),
  ];

  it("takes the time of its newest run, and begins there", () => {
    expect(tookMs(a, runs)).toBe(2000);
    expect(beginOf(a, runs).offset).toBe(40);
    const first = { ...a, thread: "thread_Impact", attempt: 1, started_at: "2026-01-05T12:00:00Z" };
    expect(beginOf(first, runs).offset).toBe(6);
    expect(tookMs({ ...first, ended_at: undefined }, runs)).toBeUndefined();
  });

  it("was open at the offset: agents and questions, no events, nothing before or after", () => {
    const all = [
      active({ id: "1", element: "Early", offset: 1, end_offset: 9, thread: "t" }),
      active({ id: "2", element: "Side", offset: 8, end_offset: 30, thread: "t2" }),
      active({ id: "3", element: "Ask", offset: 8, type: "userTask" }),
      active({ id: "4", element: "Timer", offset: 8, type: "intermediateCatchEvent" }),
      active({ id: "5", element: "Chosen", offset: 10, thread: "t3" }),
    ];
    expect(openAt(10, all).map((x) => x.element)).toEqual(["Side", "Ask"]);
  });
});

describe("what a workflow waits for", () => {
  it("is a sentence for each wait that is not for an agent", () => {
    const wait = { offset: 5, element: "Pay" };
    const w = view(
      [
        active({
          id: "1",
          element: "Pay",
          offset: 4,
          waits: [
            { ...wait, for: "agent" },
            { ...wait, for: "message", message: "Paid", correlation: "7" },
          ],
        }),
      ],
      {},
    );
    w.waits = [{ ...wait, for: "signal", signal: "Stop" }];
    expect(waitsOf(w).map(waitText)).toEqual(["waits for the message Paid (7)", "waits for the signal Stop"]);
    expect(waitText({ ...wait, for: "timer", due: "soon" })).toBe("waits until soon");
    expect(waitsOf(undefined)).toEqual([]);
  });

  it("can be an event that was not entered: it waits, and has its message", () => {
    const more = { offset: 3, element: "More", for: "message", message: "More facts", within: true };
    const w = view(
      [active({ id: "1", element: "Pay", offset: 4, waits: [{ offset: 5, element: "Pay", for: "user" }] })],
      {},
    );
    w.waits = [more];
    expect(elementsNow({ workflow: w, reverted: [] } as never).get("More")).toEqual({
      state: "waiting",
      activations: [],
      entered: 0,
    });
    expect(waitsFor("More", w)).toEqual([more]);
    expect(waitsFor("Pay", w)).toEqual([]);
  });
});

describe("the question of a user task", () => {
  const ask = (id: string, offset: number) =>
    ({ id, offset, thread: "main", status: "open", started_at: "", options: [] }) as never;
  const asks = [ask("per_i.8", 10), ask("per_i.18", 12), ask("per_j.8", 30)];

  it("is the one it waits for, and later the one that was asked in its time", () => {
    const a = active({ id: "8", element: "T", offset: 9, end_offset: 20 });
    expect(questionOf(a, asks, "main")?.id).toBe("per_i.8");
    expect(questionOf({ ...a, offset: 29, end_offset: undefined }, asks, "main")?.id).toBe("per_j.8");
    const waiting = { ...a, waits: [{ element: "T", for: "user", permission: "per_i.18", offset: 11 }] };
    expect(questionOf(waiting, asks, "main")?.id).toBe("per_i.18");
    expect(questionOf(a, asks, "other")).toBeUndefined();
  });
});
