// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { api } from "@/client";
import { Toolbar } from "./toolbar";

beforeEach(() => {
  // jsdom has no modal dialogs.
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true;
  };
  HTMLDialogElement.prototype.close = () => undefined;
  vi.spyOn(api, "clear").mockResolvedValue({} as never);
});
afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

function show(status: string) {
  const workflow = { status, thread: "main", activations: [], elements: [], variables: {}, flows: {}, tokens: [] };
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Toolbar id="w" moment={{ workflow, reverted: [] } as never} notify={vi.fn()} onVariables={vi.fn()} />
    </QueryClientProvider>,
  );
  fireEvent.click(screen.getByRole("button", { name: "Clear execution" }));
}

it("asks before it clears a workflow that runs, and says what is lost", async () => {
  show("running");
  screen.getByText(/A clear cancels it, with what its agents do now/);
  fireEvent.click(screen.getByRole("button", { name: "Keep it" }));
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  expect(api.clear).not.toHaveBeenCalled();
  fireEvent.click(screen.getByRole("button", { name: "Clear execution" }));
  fireEvent.click(screen.getByRole("button", { name: "Cancel and clear" }));
  await waitFor(() => expect(api.clear).toHaveBeenCalledWith("w"));
});

it("clears at once what has ended", async () => {
  show("complete");
  await waitFor(() => expect(api.clear).toHaveBeenCalledWith("w"));
  expect(screen.queryByRole("dialog")).toBeNull();
});
