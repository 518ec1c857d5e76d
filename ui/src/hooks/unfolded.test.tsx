// @vitest-environment jsdom

import type { ToolCall } from "@tapedeck/client";
import { act, renderHook } from "@testing-library/react";
import { expect, it } from "vitest";
import type { Row } from "@/components/conversation/rows";
import { useUnfolded } from "./unfolded";

const row = (key: string, more: Partial<ToolCall> = {}): Row => ({
  kind: "tool",
  key,
  offset: 1,
  call: {
    offset: 1,
    thread: "main",
    status: "complete",
    started_at: "2026-01-05T12:00:00Z",
    id: key,
    name: "Bash",
    arguments: "",
    ...more,
  },
});
const plain = row("a");
const failed = row("b", { status: "failed" });
const edit = row("c", { name: "Edit", input: { file_path: "a.txt", old_string: "x", new_string: "y" } });

it("unfolds failed calls and edits until the user folds them", () => {
  const { result } = renderHook(useUnfolded);
  const open = () => [plain, failed, edit].map((r) => result.current.isOpen(r));
  expect(open()).toEqual([false, true, true]);
  act(() => result.current.toggle(failed));
  act(() => result.current.toggle(plain));
  expect(open()).toEqual([true, false, true]);
});

it("unfolds all and none, and again the usual ones, whatever was chosen before", () => {
  const { result } = renderHook(useUnfolded);
  const open = () => [plain, failed, edit].map((r) => result.current.isOpen(r));
  act(() => result.current.toggle(failed));
  act(() => result.current.setAll("all"));
  expect(open()).toEqual([true, true, true]);
  act(() => result.current.setAll("none"));
  expect(open()).toEqual([false, false, false]);
  act(() => result.current.toggle(edit));
  expect(open()).toEqual([false, false, true]);
  act(() => result.current.setAll("usual"));
  expect(open()).toEqual([false, true, true]);
});

it("keeps a row as the user chose it when its call fails", () => {
  const { result } = renderHook(useUnfolded);
  act(() => result.current.toggle(plain));
  act(() => result.current.toggle(plain));
  expect(result.current.isOpen(row("a", { status: "failed" }))).toBe(false);
  act(() => result.current.unfold(plain));
  expect(result.current.isOpen(row("a", { status: "failed" }))).toBe(true);
});
