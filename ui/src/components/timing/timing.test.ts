import type { Envelope as Event, Message, Run, ToolCall } from "@tapedeck/client";
import { expect, it } from "vitest";
import { callsOf, withUsage } from "./calls";
import { placeOf, turnsOf } from "./spans";

const at = (s: number) => new Date(Date.UTC(2026, 0, 5, 12) + s * 1000).toISOString();
const base = (offset: number, end: number, from: number, until: number | undefined, thread = "main") => ({
  offset,
  end_offset: end,
  thread,
  invocation: thread === "main" ? "i" : "sub",
  status: "complete" as const,
  started_at: at(from),
  ...(until !== undefined && { ended_at: at(until) }),
});
const run = (thread = "main") => ({ ...base(1, 99, 0, 60, thread) }) as Run;
const text = (offset: number, end: number, from: number, until: number, more: Partial<Message> = {}) =>
  ({ ...base(offset, end, from, until), id: `m${offset}`, role: "assistant", text: "x", ...more }) as Message;
const tool = (offset: number, end: number, from: number, until: number, more: Partial<ToolCall> = {}) =>
  ({ ...base(offset, end, from, until), id: `t${offset}`, name: "Bash", arguments: "", ...more }) as ToolCall;

it("finds the calls of a model: each answer of tools is the input of the next one", () => {
  const calls = callsOf(run(), {
    messages: [text(2, 4, 2, 3), text(12, 20, 15, 20)],
    tool_calls: [tool(5, 10, 4, 9), tool(6, 11, 4, 11)],
  });
  const seconds = (ms: number | undefined) => (ms === undefined ? undefined : (ms - Date.parse(at(0))) / 1000);
  expect(calls.map((c) => [c.n, c.first, seconds(c.sent), seconds(c.began), seconds(c.ended)])).toEqual([
    [1, 2, 0, 2, 4],
    [2, 12, 11, 15, 20],
  ]);
});

it("believes the numbers of calls, if the log has them", () => {
  const messages = [text(2, 3, 1, 2, { turn: 1 }), text(4, 5, 3, 4, { turn: 1 }), text(6, 7, 5, 6, { turn: 2 })];
  expect(callsOf(run(), { messages, tool_calls: [] }).map((c) => c.first)).toEqual([2, 6]);
});

it("has no call for other runs, threads and roles", () => {
  const messages = [
    text(2, 3, 1, 2, { role: "user" }),
    text(4, 5, 1, 2, { thread: "other" }),
    text(6, 7, 1, 2, { invocation: "j" }),
  ];
  expect(callsOf(run(), { messages, tool_calls: [] })).toEqual([]);
});

it("gives each call the usage that was reported for it", () => {
  const report = (offset: number, invocation: string, input: unknown) =>
    ({ offset, invocation, type: "usage.reported", data: { model: "m", inputTokens: input } }) as unknown as Event;
  const calls = callsOf(run(), {
    messages: [text(2, 3, 1, 2, { turn: 1 }), text(6, 7, 5, 6, { turn: 2 })],
    tool_calls: [],
  });
  const used = withUsage(calls, [report(4, "i", 10), report(5, "j", 99), report(8, "i", "many")]);
  expect(used.map((c) => c.usage?.input)).toEqual([10, 0]);
});

it("puts a sub-agent into the turn in which it worked, and below the run that started it", () => {
  const view = {
    threads: [{ name: "main" }, { name: "sub", parent: "main" }] as never,
    runs: [run(), { ...base(20, 30, 10, 20, "sub") } as Run],
    messages: [],
    tool_calls: [tool(10, 31, 9, 21), { ...tool(21, 25, 11, 12), thread: "sub", invocation: "sub" }],
  };
  const turns = turnsOf(view, []);
  expect(turns.length).toBe(1);
  expect(turns[0]?.spans.map((s) => [s.kind, s.depth])).toEqual(
    [
      ["run", 0],
      ["tool", 1],
      ["run", 1],
      ["tool", 2],
    ]
      .toSpliced(1, 0, ["model", 1])
      .toSpliced(4, 0, ["model", 2]),
  );
});

it("places bars within their turn, whatever the clocks say", () => {
  const turn = { from: 1000, until: 2000 };
  expect(placeOf({ from: 1500, until: 1750 }, turn)).toEqual({ left: 50, width: 25 });
  expect(placeOf({ from: 1500, until: undefined }, turn)).toEqual({ left: 50, width: 50 });
  expect(placeOf({ from: 0, until: 900 }, turn).left).toBe(0);
  expect(placeOf({ from: 2000, until: 1000 }, turn).width).toBe(0.5);
  expect(placeOf({ from: 5, until: 5 }, { from: 5, until: 5 })).toEqual({ left: 0, width: 100 });
});
