// @vitest-environment jsdom

import type { Snapshot } from "@tapedeck/client";
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { EarlierMessages } from "@/components/conversation/list";
import { useEarlier } from "./earlier";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const view = { at: 900, earlier: 300, messages: [{ offset: 600 }], tool_calls: [], runs: [] } as unknown as Snapshot;

function Page() {
  const { parts, left, ...rest } = useEarlier("s", view, 0);
  return (
    <>
      <p>{parts?.messages.length ?? 0} loaded</p>
      <EarlierMessages n={left} {...rest} />
    </>
  );
}

it("shows why earlier messages did not load, and tries again", async () => {
  const answer = { ...view, earlier: 299, messages: [{ offset: 599 }] };
  const fetches = vi.fn().mockRejectedValueOnce(new TypeError("offline")).mockResolvedValue(Response.json(answer));
  vi.stubGlobal("fetch", fetches);
  render(<Page />);
  fireEvent.click(screen.getByRole("button", { name: "Load earlier messages (300)" }));
  await screen.findByRole("alert");
  fireEvent.click(screen.getByRole("button", { name: "Try again" }));
  await screen.findByText("1 loaded");
  expect(screen.queryByRole("alert")).toBeNull();
  screen.getByRole("button", { name: "Load earlier messages (299)" });
  expect(fetches).toHaveBeenCalledTimes(2);
});
