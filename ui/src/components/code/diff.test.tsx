// @vitest-environment jsdom

import type { ToolCall } from "@tapedeck/client";
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import { DiffLines } from "../conversation/edit-diff";
import { outputLanguage } from "../conversation/tool";

afterEach(cleanup);

it("renders a diff as lines whose last child is the text to highlight", () => {
  const lines = [
    { op: " ", text: "a" },
    { op: "-", text: "b" },
    { op: "+", text: "" },
  ];
  render(<DiffLines lines={lines} label="changes" language="go" />);
  const rows = [...screen.getByRole("group", { name: "changes" }).children];
  expect(rows.map((r) => r.textContent)).toEqual(["  a", "- b", "+ "]);
  expect(rows.slice(0, 2).map((r) => (r.lastChild as Text).data)).toEqual(["a", "b"]);
});

it("finds the language of a tool output only if it is known", () => {
  const call = (name: string, text: string, input: ToolCall["input"] = {}) =>
    outputLanguage({ name, input, result: { offset: 0, text } } as ToolCall);
  expect(call("Read", "package a", { file_path: "x/a.go" })).toBe("go");
  expect(call("read_file", "x", { path: "a.unknown" })).toBeUndefined();
  expect(call("Edit", "1 replacement", { path: "a.go" })).toBeUndefined();
  expect(call("Bash", "diff --git a/x b/x\n+a")).toBe("diff");
  expect(call("Fetch", ' {"a": 1}\n')).toBe("json");
  expect(call("Fetch", "[ok] done")).toBeUndefined();
  expect(outputLanguage({ name: "Read" } as ToolCall)).toBeUndefined();
});
