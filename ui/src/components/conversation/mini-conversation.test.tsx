// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import type { Permission } from "@tapedeck/client";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { MiniConversation } from "./mini-conversation";
import type { Parts, RowActions } from "./rows";

afterEach(cleanup);

const asked: Permission = {
  offset: 7,
  thread: "sub",
  invocation: "i",
  status: "open",
  started_at: "2026-01-05T12:00:00Z",
  id: "ask",
  message: "May I?",
  options: [{ id: "yes", name: "Yes" }],
};

function show(permission: Permission, onAnswer?: RowActions["onAnswer"]) {
  const parts: Parts = { messages: [], tool_calls: [], runs: [], permissions: [permission] };
  return (
    <QueryClientProvider client={new QueryClient()}>
      <MiniConversation parts={parts} label="Little" onAnswer={onAnswer} />
    </QueryClientProvider>
  );
}

it("answers a permission request in place, with the members that identify it", async () => {
  const answer = vi.fn(async () => undefined);
  const { rerender } = render(show(asked, answer));
  fireEvent.click(screen.getByRole("button", { name: "Yes" }));
  await waitFor(() => expect(answer).toHaveBeenCalledWith(asked, "yes"));
  rerender(show({ ...asked, status: "answered", option: "yes" }, answer));
  screen.getByText("Answered: Yes");
});

it("shows why an answer was refused", async () => {
  render(show(asked, () => Promise.reject(new Error("another user was faster"))));
  fireEvent.click(screen.getByRole("button", { name: "Yes" }));
  await screen.findByText(/another user was faster/i);
});

it("is read-only without an answer handler", () => {
  render(show(asked));
  expect(screen.getByRole("button", { name: "Yes" })).toHaveProperty("disabled", true);
});
