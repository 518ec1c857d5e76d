// @vitest-environment jsdom

import type { ToolCall } from "@tapedeck/client";
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { callSummary, indented, ToolBody } from "./tool";

afterEach(cleanup);

it("makes hidden characters in the name of a tool visible", () => {
  const call: ToolCall = {
    offset: 1,
    thread: "main",
    status: "pending",
    started_at: "2026-01-05T12:00:00Z",
    id: "t",
    name: "\u202Ehsab\u200B",
    arguments: "",
  };
  render(<ToolBody call={call} open={false} onToggle={() => {}} />);
  expect(screen.getByRole("button").textContent).toContain("⟨U+202E⟩hsab⟨U+200B⟩");
});

const call = (more: Partial<ToolCall>): ToolCall => ({
  offset: 1,
  thread: "main",
  status: "complete",
  started_at: "2026-01-05T12:00:00Z",
  id: "t",
  name: "tool",
  arguments: "",
  ...more,
});

it("shows a todo list as a list, and how much of it is done", () => {
  const todos = [
    { content: "read", status: "completed" },
    { content: "fix", status: "in_progress" },
    { content: "test", status: "pending" },
  ];
  const c = call({ name: "TodoWrite", input: { todos } });
  expect(callSummary(c)).toBe("1 of 3 done: fix");
  render(<ToolBody call={c} open onToggle={() => {}} />);
  expect(screen.getAllByRole("listitem").map((li) => li.textContent)).toEqual([
    "☑completed: read",
    "→in progress: fix",
    "○pending: test",
  ]);
  expect(callSummary(call({ input: { todos: [{ text: "other" }] } }))).toBe("");
});

it("shows a command as it is run, and the other arguments as JSON", () => {
  render(<ToolBody call={call({ input: { command: "ls\n-l \u202E", timeout: 5 } })} open onToggle={() => {}} />);
  expect(screen.getByRole("group", { name: "Arguments of tool" }).textContent).toBe("ls\n-l ⟨U+202E⟩");
  expect(screen.getByRole("group", { name: /^Other/ }).textContent).toBe('{\n  "timeout": 5\n}');
});

it("indents JSON of one line, and changes nothing else", () => {
  expect(indented('{"a":[1]}')).toBe('{\n  "a": [\n    1\n  ]\n}');
  for (const text of ['{"a":', "plain", '{\n"a":1}', '{"id":12345678901234567890}', ""])
    expect(indented(text)).toBe(text);
});

it("leads to the sub-agents that it has started", () => {
  const onThread = vi.fn();
  render(<ToolBody call={call({ threads: ["sub_1"] })} open={false} onToggle={() => {}} onThread={onThread} />);
  fireEvent.click(screen.getByRole("button", { name: "Show the sub-agent sub_1" }));
  expect(onThread).toHaveBeenCalledWith("sub_1");
});
