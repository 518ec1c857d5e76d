// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import type { Diff } from "@tapedeck/client";
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { StateChanges } from "./totals-table";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

it("shows why the shared states are missing, and tries again", async () => {
  let works = false;
  vi.stubGlobal("fetch", async (path: string) => {
    if (!works) throw new TypeError("offline");
    return Response.json({ state: { value: { n: path.includes("/a/") ? 1 : 2 } } });
  });
  const diff = { a: { id: "a", at: 5 }, b: { id: "b", at: 6 } } as Diff;
  render(
    <QueryClientProvider client={new QueryClient()}>
      <StateChanges diff={diff} />
    </QueryClientProvider>,
  );
  await screen.findByRole("alert");
  screen.getByRole("heading", { name: "Shared state at the end" });
  works = true;
  fireEvent.click(screen.getByRole("button", { name: "Try again" }));
  expect((await screen.findByText("n")).closest("li")?.textContent).toContain("changed");
  expect(screen.queryByRole("alert")).toBeNull();
});
