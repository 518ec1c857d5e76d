// @vitest-environment jsdom

import type { ToolCall } from "@tapedeck/client";
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import { ToolBody } from "./tool";

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
