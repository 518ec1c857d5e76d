// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import type { Branch, ReplayIndex } from "@tapedeck/client";
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { Branches } from "./branches";

vi.mock("../branches/graph", () => ({ Graph: () => null }));

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const branch = (n: number): Branch => ({
  id: `b${n}`,
  kind: n === 0 ? "main" : "rewound",
  session: "b0",
  fork_at: 0,
  from: 0,
  to: 1,
});

async function saysCut(count: number, cut?: boolean): Promise<boolean> {
  const branches = Array.from({ length: count }, (_, n) => branch(n));
  vi.stubGlobal("fetch", async () => Response.json({ at: 1, branches, cut }));
  const index = { runs: {}, marked: {} } as unknown as ReplayIndex;
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Branches id="b0" index={index} onSeek={vi.fn()} onOpen={vi.fn()} onUndo={vi.fn()} busy={false} />
    </QueryClientProvider>,
  );
  await screen.findByRole("heading", { name: "Branches" });
  const says = screen.queryByText(/not all branches are shown|Showing the first/) !== null;
  cleanup();
  return says;
}

it("says that branches are missing only if the server left some out", async () => {
  expect(await saysCut(1500)).toBe(false);
  expect(await saysCut(20, true)).toBe(true);
});
