import type { Branch, Snapshot } from "@tapedeck/client";
import { expect, it } from "vitest";
import { treeOf } from "../branches/tree";
import { diffLines } from "../conversation/edit";
import { canResume } from "./composer";
import { changedKeys, hiddenByRewind } from "./rewind-dialog";

const at = "2026-01-05T12:00:00.000Z";
const item = (offset: number, invocation: string, thread = "main") => ({
  offset,
  invocation,
  thread,
  status: "complete" as const,
  started_at: at,
});
const view: Snapshot = {
  session: { status: "complete" },
  at: 20,
  threads: [],
  messages: [
    { ...item(1, "i1"), id: "a", role: "user", text: "one" },
    { ...item(3, "i1"), id: "b", role: "assistant", text: "1" },
    { ...item(6, "i2"), id: "c", role: "user", text: "two" },
    { ...item(8, "i2"), id: "d", role: "reasoning", text: "hm" },
    { ...item(9, "i2"), id: "e", role: "assistant", text: "2" },
    { ...item(12, "i3", "other"), id: "f", role: "user", text: "three" },
  ],
  tool_calls: [
    { ...item(4, "i1"), id: "s", name: "Edit", arguments: "", input: { path: "before.go", new_string: "x" } },
    { ...item(10, "i2"), id: "t", name: "Edit", arguments: "", input: { path: "a.go", new_string: "x" } },
  ],
  runs: [{ ...item(13, "i3", "other"), status: "running" }],
  state: null,
  plan: null,
};

it("counts the items that a rewind will hide", () => {
  expect(hiddenByRewind(view, "i2")).toEqual({
    first: 6,
    thread: "main",
    task: "two",
    turns: 2,
    messages: 3,
    calls: 1,
    files: ["a.go"],
    running: 1,
  });
  expect(hiddenByRewind(view, "i2", "main")).toMatchObject({ turns: 1, messages: 2, calls: 1, running: 0 });
  expect(hiddenByRewind(view, "i2", undefined, 3)).toMatchObject({ first: 3, messages: 4 });
  expect(hiddenByRewind(view, "unknown")).toMatchObject({ messages: 0, calls: 0 });
});

it("lists the members of the state that will change", () => {
  expect(changedKeys({ a: 1, b: [1], c: {} }, { a: 1, b: [2], d: null })).toEqual(["b", "c", "d"]);
  expect(changedKeys(undefined, "text")).toEqual([]);
});

it("offers to resume only runs that started and ended early", () => {
  const run = { ...item(1, "i") };
  const can = (status: string, resumable?: boolean) => canResume({ ...run, status: status as "failed", resumable });
  expect([can("failed"), can("interrupted"), can("cancelled", true)]).toEqual([true, true, true]);
  expect([can("complete"), can("running"), can("cancelled"), canResume(undefined)]).toEqual([
    false,
    false,
    false,
    false,
  ]);
});

it("puts each branch under its parent, even if the data has a cycle", () => {
  const b = (id: string, parent?: string): Branch => ({
    id,
    parent,
    kind: "fork",
    session: id,
    fork_at: 0,
    from: 0,
    to: 1,
  });
  expect(
    treeOf([b("a"), b("b", "a"), b("c", "b"), b("d", "a"), b("e", "gone")]).map((x) => `${x.branch.id}${x.depth}`),
  ).toEqual(["a0", "b1", "c2", "d1", "e0"]);
  expect(treeOf([b("x", "y"), b("y", "x")])).toEqual([]);
});

it("marks only the lines that an edit replaces", () => {
  const ops = (a: string, b: string) =>
    diffLines(a.split(""), b.split(""))
      .map((l) => l.op + l.text)
      .join("|");
  expect(ops("abc", "axc")).toBe(" a|-b|+x| c");
  expect(ops("aa", "aaa")).toBe(" a| a|+a");
  expect(ops("abc", "abc")).toBe(" a| b| c");
});
