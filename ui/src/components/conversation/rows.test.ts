import type { Marker, Message, Run, ToolCall } from "@tapedeck/client";
import { describe, expect, it } from "vitest";
import { invocationOf, marksOf, rowsOf } from "./rows";

const time = (s: number) => new Date(Date.UTC(2026, 0, 5, 12, 0, s)).toISOString();
const item = (offset: number, s = offset) => ({
  offset,
  end_offset: offset + 1,
  thread: "main",
  invocation: "i1",
  status: "complete" as const,
  started_at: time(s),
  ended_at: time(s),
});
const message = (offset: number, m: Partial<Message> = {}): Message => ({
  ...item(offset),
  id: `m${offset}`,
  role: "assistant",
  text: "words",
  ...m,
});
const call = (offset: number, c: Partial<ToolCall> = {}): ToolCall => ({
  ...item(offset),
  id: `c${offset}`,
  name: "Bash",
  arguments: "{}",
  ...c,
});
const run = (offset: number, r: Partial<Run> = {}): Run => ({ ...item(offset), ...r });
const mark = (offset: number, to_offset: number, kind: Marker["kind"] = "rewind"): Marker => ({
  offset,
  kind,
  at: time(offset),
  position_ms: 0,
  thread: "main",
  to_offset,
});

describe("rowsOf", () => {
  it("has a message before the calls of the same event", () => {
    const rows = rowsOf({ messages: [message(1)], tool_calls: [call(1), call(2)], runs: [] }, []);
    expect(rows.map((r) => r.key)).toEqual(["m1", "t1", "t2"]);
  });

  it("has a row for each attempt that replaced another one", () => {
    const retries = [{ from: 3, to: 5, attempt: 2, reason: "it broke off" }];
    const rows = rowsOf(
      { messages: [message(1), message(6)], tool_calls: [], runs: [run(2, { end_offset: 9, retries })] },
      [],
    );
    expect(rows.map((r) => `${r.kind} ${r.offset}`)).toEqual(["message 1", "retry 5", "message 6", "end 9"]);
  });

  it("orders items by their start, and runs by their end", () => {
    const rows = rowsOf(
      { messages: [message(1), message(5)], tool_calls: [call(3)], runs: [run(0, { end_offset: 9 })] },
      [mark(12, 4)],
    );
    expect(rows.map((r) => `${r.kind} ${r.offset}`)).toEqual(["message 1", "tool 3", "message 5", "end 9", "jump 12"]);
    expect(rows.slice(0, 4).map(invocationOf)).toEqual(["i1", "i1", "i1", "i1"]);
  });

  it("shows the result of a tool only with its call", () => {
    const answered = call(1, { id: "c", result: { offset: 2, text: "ok" } });
    const rows = rowsOf(
      {
        messages: [message(2, { role: "tool", tool_call_id: "c" }), message(3, { role: "tool", tool_call_id: "lost" })],
        tool_calls: [answered],
        runs: [],
      },
      [],
    );
    expect(rows.map((r) => r.key)).toEqual(["t1", "m3"]);
  });

  it("leaves out empty messages, unless they still stream", () => {
    const rows = rowsOf(
      {
        messages: [message(1, { text: "" }), message(2, { text: "", status: "running" })],
        tool_calls: [],
        runs: [run(0, { end_offset: undefined })],
      },
      [],
    );
    expect(rows.map((r) => r.key)).toEqual(["m2"]);
  });

  it("shows long pauses", () => {
    const late = message(4, { started_at: time(1000), ended_at: time(1000) });
    const rows = rowsOf({ messages: [message(1), late], tool_calls: [], runs: [] }, []);
    expect(rows.map((r) => r.kind)).toEqual(["message", "gap", "message"]);
    expect(rows[1]).toMatchObject({ ms: 999_000 });
  });

  it("keeps the row of an unchanged item", () => {
    const parts = { messages: [message(1)], tool_calls: [call(3)], runs: [] };
    const [a, b] = [rowsOf(parts, []), rowsOf({ ...parts }, [])];
    expect(a[0]).toBe(b[0]);
    expect(a[1]).toBe(b[1]);
  });
});

describe("marksOf", () => {
  it("shows the markers before the playhead that were not reverted", () => {
    const markers = [mark(10, 4), mark(20, 15), { ...mark(30, 0, "user") }];
    expect(marksOf(markers, 15).map((m) => m.offset)).toEqual([10]);
    expect(marksOf(markers, 99).map((m) => m.offset)).toEqual([10, 20]);
    expect(marksOf([mark(10, 4), mark(20, 2)], 99).map((m) => m.offset)).toEqual([20]);
  });

  it("detects an undo and a redo: jumps to the marker of another jump", () => {
    const all = [mark(10, 4), mark(11, 10), mark(12, 11), mark(13, 12)];
    const labels = [15, 13, 12, 11].map((at) => marksOf(all, at).map((m) => [m.offset, m.label]));
    expect(labels).toEqual([[[13, "undo"]], [[12, "redo"]], [[11, "undo"]], [[10, undefined]]]);
  });
});
