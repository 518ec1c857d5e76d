// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import type { Input, Run, SessionInfo } from "@tapedeck/client";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { Composer } from "./composer";

afterEach(() => {
  cleanup();
  sessionStorage.clear();
  vi.unstubAllGlobals();
});

/** A composer, and the functions that end its request. */
function show(run?: Partial<Run>, inputs?: Partial<Input>[]) {
  const request = vi.fn();
  let resolve = (_: Response) => {};
  let reject = (_: Error) => {};
  const answer = new Promise<Response>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  vi.stubGlobal("fetch", (path: string, init: RequestInit) => {
    request(new URL(String(path), "http://host").pathname, init.body ? JSON.parse(String(init.body)) : init.method);
    return answer;
  });
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Composer
        id="s"
        thread="main"
        session={{} as SessionInfo}
        run={run as Run}
        inputs={inputs as Input[]}
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

it("queues what is sent while the agent runs, or steers it", async () => {
  const { request, resolve, area, type } = show({ status: "running" });
  expect(screen.queryByText("Steer")).toBeNull();
  type("next");
  expect(screen.getByRole<HTMLInputElement>("radio", { name: /^Queue/ }).checked).toBe(true);
  fireEvent.click(screen.getByRole("radio", { name: /^Steer/ }));
  fireEvent.keyDown(area, { key: "Enter" });
  await waitFor(() => expect(request).toHaveBeenCalledWith("/api/v1/sessions/s/task", { task: "next", when: "steer" }));
  resolve(Response.json({ status: "waiting", note: "the agent bot takes no input" }));
  expect((await screen.findByRole("status")).textContent).toBe("The agent bot takes no input.");
  type("after");
  expect(screen.getByRole<HTMLInputElement>("radio", { name: /^Queue/ }).checked).toBe(true);
});

it("shows what waits in the thread, withdraws it and moves it", async () => {
  const input = (id: string, more?: Partial<Input>) =>
    ({ id, text: `text ${id}`, status: "waiting", thread: "main", when: "queue", ...more }) as const;
  const { request } = show({ status: "running" }, [
    input("a"),
    input("b", { status: "withdrawn" }),
    input("c", { thread: "other" }),
    input("d", { when: "steer" }),
  ]);
  expect(screen.getAllByRole("listitem").map((li) => li.textContent)).toEqual(["Queuedtext a", "Steerstext d"]);
  fireEvent.click(screen.getAllByRole("button", { name: "Run earlier" })[1]!);
  await waitFor(() => expect(request).toHaveBeenCalledWith("/api/v1/sessions/s/inputs/d", { before: "a" }));
  fireEvent.click(screen.getAllByRole("button", { name: "Withdraw" })[0]!);
  await waitFor(() => expect(request).toHaveBeenCalledWith("/api/v1/sessions/s/inputs/a", "DELETE"));
});
