import type { Json, ToolCall } from "@tapedeck/client";
import { expect, it } from "vitest";
import { asPatch, changesOf } from "./changes";
import { editsOf } from "./edit";

let offset = 0;
const call = (name: string, input: Json, more: Partial<ToolCall> = {}): ToolCall => ({
  offset: offset++,
  thread: "main",
  status: "complete",
  started_at: "2026-01-05T12:00:00Z",
  id: `t${offset}`,
  name,
  arguments: "",
  input,
  ...more,
});
const edit = (path: string, before: string, after: string, more: Partial<ToolCall> = {}) =>
  call("Edit", { file_path: path, old_string: before, new_string: after }, more);
const text = (calls: ToolCall[]) =>
  changesOf(calls).map((f) => [f.path, ...f.parts.map((p) => p.map((l) => l.op + l.text).join("\n"))]);

it("joins edits of one file to one diff, and leaves out what a later edit undoes", () => {
  expect(
    text([edit("b.go", "one\ntwo", "one\n2"), edit("b.go", "2", "II"), edit("a.go", "x", "y"), edit("a.go", "y", "x")]),
  ).toEqual([["a.go"], ["b.go", " one\n-two\n+II"]]);
});

it("keeps edits of different places apart, in their order", () => {
  const [file] = changesOf([edit("a", "one", "1"), edit("a", "nine", "9")]);
  expect(file?.parts.length).toBe(2);
  expect([file?.added, file?.removed, file?.edits]).toEqual([2, 2, 2]);
});

it("shows a file that was written whole, with the edits after it", () => {
  const [file] = changesOf([call("Write", { file_path: "n.txt", content: "a\nb\n" }), edit("n.txt", "b", "c")]);
  expect(file).toMatchObject({ whole: true, added: 2, removed: 0 });
  expect(file?.parts[0]?.map((l) => l.text)).toEqual(["a", "c"]);
});

it("counts no call that failed, was cancelled or has no answer yet", () => {
  for (const status of ["failed", "cancelled", "interrupted", "running", "pending"] as const)
    expect(changesOf([edit("a", "x", "y", { status })])).toEqual([]);
});

it("reads patches of Codex, unified diffs, several edits in one call, and ACP", () => {
  const codex = "*** Begin Patch\n*** Update File: a.txt\n@@\n-old\n+new\n*** Add File: b.txt\n+first\n*** End Patch";
  expect(text([call("apply_patch", { input: codex })])).toEqual([
    ["a.txt", "@@@\n-old\n+new"],
    ["b.txt", "+first"],
  ]);
  const unified = "--- a/c.txt\n+++ b/c.txt\n@@ -1 +1 @@\n-x\n+y\n";
  expect(text([call("mcp__files__apply-diff", { path: "c.txt", diff: unified })])[0]?.[0]).toBe("c.txt");
  const list = {
    file_path: "d",
    edits: [
      { old_string: "1", new_string: "2" },
      { old_string: "3", new_string: "4" },
    ],
  };
  expect(changesOf([call("MultiEdit", list)])[0]?.parts.length).toBe(2);
  expect(text([call("anything", { path: "e", oldText: "p", newText: "q" })])).toEqual([["e", "-p\n+q"]]);
});

it("reads nothing into calls that only read, or whose arguments have other forms", () => {
  for (const input of [
    null,
    5,
    "x",
    [],
    { path: 5, content: "x" },
    { path: "a" },
    { path: "a", edits: "no" },
  ] as Json[])
    expect(editsOf(call("Read", input))).toEqual([]);
  expect(editsOf(call("Read", { path: "a", content: "x" }))).toEqual([]);
  expect(editsOf(call("Write", { path: "a", content: 5 }))).toEqual([]);
});

it("does not compare texts that are too long for it", () => {
  const many = "x\n".repeat(5000);
  const began = changesOf([call("Write", { path: "a", content: many }), edit("a", `${many}y`, "z")]);
  expect(began[0]?.parts.length).toBe(2);
});

it("is copied as a diff", () => {
  expect(asPatch(changesOf([edit("a.go", "x", "y")]))).toBe("--- a/a.go\n+++ b/a.go\n@@ @@\n-x\n+y\n");
});
