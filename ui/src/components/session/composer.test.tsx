// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import type { Run, SessionInfo } from "@/fold/types";
import { Composer } from "./composer";

afterEach(() => {
  cleanup();
  sessionStorage.clear();
  vi.unstubAllGlobals();
});

/** A composer, and the functions that end its request. */
function show(run?: Partial<Run>) {
  const request = vi.fn();
  let resolve = (_: Response) => {};
  let reject = (_: Error) => {};
  const answer = new Promise<Response>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  vi.stubGlobal("fetch", (path: string, init: RequestInit) => {
    request(path, JSON.parse(String(init.body)));
    return answer;
  });
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Composer
        id="s"
        thread="main"
        session={{} as SessionInfo}
        run={run as Run}
        asks={false}
        live
        onLive={() => undefined}
      />
    </QueryClientProvider>,
  );
  const area = screen.getByLabelText<HTMLTextAreaElement>("Message to the agent");
  const type = (value: string) => fireEvent.change(area, { target: { value } });
  return { request, resolve, reject, area, type };
}

it.each([
  ["Send", undefined],
  ["Resume", { status: "interrupted" as const }],
])("keeps what is typed while a request is pending: %s", async (button, run) => {
  const { request, resolve, area, type } = show(run);
  type("first");
  fireEvent.click(screen.getByRole("button", { name: button }));
  await waitFor(() =>
    expect(request).toHaveBeenCalledWith(expect.anything(), expect.objectContaining({ task: "first" })),
  );
  expect(area.value).toBe("");
  type("second");
  resolve(Response.json({}));
  await waitFor(() => expect(screen.getByRole("button", { name: button }).getAttribute("aria-busy")).toBeNull());
  expect(area.value).toBe("second");
});

it("puts a text back that was not sent, before the text typed since", async () => {
  const { request, reject, area, type } = show();
  type("first");
  fireEvent.keyDown(area, { key: "Enter" });
  await waitFor(() => expect(request).toHaveBeenCalled());
  type("second");
  reject(new TypeError("offline"));
  await screen.findByRole("alert");
  expect(area.value).toBe("first\nsecond");
});
