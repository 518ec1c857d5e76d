// @vitest-environment jsdom
import { readFileSync } from "node:fs";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import type { Permission } from "@tapedeck/client";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { linesOfDiff, visible } from "./action";
import { Ask } from "./ask";

afterEach(cleanup);

const asked: Permission = {
  offset: 7,
  thread: "main",
  status: "open",
  started_at: "2026-01-05T12:00:00Z",
  id: "ask",
  message: "May the agent call run_command?",
  action: {
    tool: "run_command",
    command: "make clean &&\n\u202Edocker system prune -af --volumes",
    folder: "/w",
    changes: [{ path: "a.go", diff: "@@ -1 +1 @@\n-old\n+new\n" }],
    locations: [{ path: "b.go", line: 7 }, { path: "a.go" }, "odd"],
    arguments: '{"timeout": 5}',
    note: "tidy up",
    cut: 1200,
    more: 1,
  },
  options: [
    { id: "always", name: "Always allow", kind: "allow_always", covers: "this exact command" },
    { id: "no", name: "Reject", kind: "reject_once" },
    { id: "yes", name: "Allow once", kind: "allow_once" },
  ],
};

function show(permission: Permission, onAnswer = vi.fn(async () => undefined)) {
  const { container } = render(
    <QueryClientProvider client={new QueryClient()}>
      <Ask permission={permission} onAnswer={onAnswer} />
    </QueryClientProvider>,
  );
  return { onAnswer, container };
}

it("shows the complete action before it is answered", () => {
  show(asked);
  const command = screen.getByRole("group", { name: "Command" });
  expect(command.textContent).toBe("$ make clean &&\n⟨U+202E⟩docker system prune -af --volumes");
  expect(screen.getByRole("group", { name: "Changes to a.go" }).textContent).toContain("- old+ new");
  for (const text of [
    "b.go:7",
    '{"timeout": 5}',
    "Note from the agent: tidy up",
    "Not shown: 1,200 bytes of this and 1 more file.",
  ])
    screen.getByText(text);
  screen.getByText(/in \/w/);
});

it("puts options that answer once first, and shows what lasting options cover", async () => {
  const { onAnswer: answer } = show(asked);
  const names = screen.getAllByRole("button").map((b) => b.textContent);
  expect(names).toEqual(["Allow once", "Reject", "Always allow"]);
  const looks = screen.getAllByRole("button").map((b) => /bg-accent|text-bad|bg-panel/.exec(b.className)?.[0]);
  expect(looks).toEqual(["bg-accent", "text-bad", undefined]);
  screen.getByText("Covers this exact command.");
  fireEvent.click(screen.getByRole("button", { name: "Allow once" }));
  await waitFor(() => expect(answer).toHaveBeenCalledWith(asked, "yes"));
});

it("keeps the action but no buttons after the answer", () => {
  show({ ...asked, status: "answered", option: "yes" });
  screen.getByText("Answered: Allow once");
  screen.getByText("Details");
  expect(screen.queryByRole("button")).toBeNull();
});

it("shows the answer without hidden characters, or that there was none", () => {
  const { container } = show({ ...asked, status: "answered", option: "no", answered_by: "user:\u202Eada" });
  screen.getByText("Answered: Reject (user:⟨U+202E⟩ada)");
  expect(container.querySelector(".text-bad")?.textContent).toBe("✕");
  cleanup();
  show({ ...asked, status: "answered", option: "other" });
  screen.getByText("Answered: other");
  cleanup();
  show({ ...asked, status: "cancelled" });
  screen.getByText("No answer");
});

it("shows every line of a change, even of a long one", () => {
  const diff = `${" same\n".repeat(3000)}+rm -rf /\n`;
  const { container } = show({ ...asked, action: { changes: [{ path: "a.go", diff }] } });
  const change = container.querySelector("[role=group]");
  expect(change?.textContent).toContain("+ rm -rf /");
  expect(change?.childElementCount).toBe(2001);
});

it("states that the agent decides if a lasting option has no coverage", () => {
  show({ ...asked, action: undefined, options: [{ id: "always", name: "Always", kind: "allow_always" }] });
  screen.getByText("Also answers later requests. The agent decides which ones.");
});

it("adds the effect of an option if its name does not state it", () => {
  const options = [
    { id: "a", name: "Reject", kind: "allow_always" },
    { id: "b", name: "Allow", kind: "allow_always" },
    { id: "c", name: "Yes", kind: "allow_once" },
    { id: "d", name: "Always reject", kind: "reject_always" },
    { id: "e", name: "Don't allow", kind: "allow_once" },
    { id: "f", name: "Odd", kind: "constructed" },
  ];
  show({ ...asked, options });
  const buttons = new Map(screen.getAllByRole("button").map((b) => [b.textContent, b.title]));
  expect(Object.fromEntries(buttons)).toEqual({
    "Reject (allows always)": "allows always",
    "Allow (allows always)": "allows always",
    "Yes (allows once)": "allows once",
    "Always reject": "rejects always",
    "Don't allow (allows once)": "allows once",
    Odd: "",
  });
});

it("makes hidden characters visible, like the command line", () => {
  const file = `${import.meta.dirname}/../../../../cmd/tapedeck/internal/terminal/testdata/visible.json`;
  for (const [text, shown] of JSON.parse(readFileSync(file, "utf8")) as [string, string][])
    expect(visible(text)).toBe(shown);
  expect(visible("a\u200Bb\u0007\tc\nd\u2028é")).toBe("a⟨U+200B⟩b⟨U+0007⟩\tc\nd⟨U+2028⟩é");
  expect(linesOfDiff("*** Begin\n@@ -1 +1 @@\n a\n-b\n+c\n")).toEqual([
    { op: " ", text: "*** Begin" },
    { op: "@", text: "@@ -1 +1 @@" },
    { op: " ", text: "a" },
    { op: "-", text: "b" },
    { op: "+", text: "c" },
  ]);
});
