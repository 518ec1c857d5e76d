// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import type { Agent, Input, Run, SessionInfo } from "@tapedeck/client";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { Composer } from "./composer";

afterEach(() => {
  cleanup();
  sessionStorage.clear();
  localStorage.clear();
  vi.unstubAllGlobals();
});

const agents: Agent[] = [
  { name: "bot", kind: "script" },
  { name: "coder", kind: "llm", models: ["small", "large"] },
  { name: "away", kind: "acp", unavailable: "it is not installed" },
];

/** A composer, and the functions that end its request. */
function show(
  run?: Partial<Run>,
  inputs?: Partial<Input>[],
  session: Partial<SessionInfo> = { agent: "bot" },
  deleted = false,
  known: Agent[] | null = agents,
) {
  const request = vi.fn();
  let resolve = (_: Response) => {};
  let reject = (_: Error) => {};
  const answer = new Promise<Response>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  vi.stubGlobal("fetch", (path: string, init: RequestInit) => {
    request(new URL(String(path), "http://host").pathname, init.body ? JSON.parse(String(init.body)) : init.method);
    return answer.then((r) => r.clone());
  });
  const queries = new QueryClient();
  if (known) queries.setQueryData(["agents"], known);
  queries.setQueryDefaults(["agents"], { staleTime: Number.POSITIVE_INFINITY });
  queries.setQueryData(["viewer"], {});
  const page = (run?: Partial<Run>, inputs?: Partial<Input>[]) => (
    <QueryClientProvider client={queries}>
      <Composer
        id="s"
        thread="main"
        session={session as SessionInfo}
        run={run as Run}
        inputs={inputs as Input[]}
        asks={false}
        live
        onLive={() => undefined}
        connection={deleted ? { state: "ended", reason: "deleted" } : undefined}
      />
    </QueryClientProvider>
  );
  const { rerender } = render(page(run, inputs));
  const then = (run?: Partial<Run>, inputs?: Partial<Input>[]) => rerender(page(run, inputs));
  const area = screen.getByLabelText<HTMLTextAreaElement>("Message to the agent");
  const type = (value: string) => fireEvent.change(area, { target: { value } });
  return { request, resolve, reject, area, type, then };
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

it("offers to resume only if an agent of the server can continue: the one that ran, or one that was picked", async () => {
  const { request } = show({ status: "interrupted", agent: "my-loop" }, undefined, {});
  const resume = () => screen.queryByRole("button", { name: "Resume" });
  expect(resume()).toBeNull();
  fireEvent.change(picker(), { target: { value: "coder" } });
  fireEvent.click(resume()!);
  await waitFor(() => expect(request).toHaveBeenCalledWith("/api/v1/sessions/s/resume", { agent: "coder" }));
});

it.each([
  ["bot", "sends"],
  ["claude-code", "puts back"],
])("asks for the agents before it sends to an agent that it does not know yet: %s", async (agent, does) => {
  const { request, resolve, area, type } = show(undefined, undefined, { agent }, false, null);
  type("go");
  fireEvent.keyDown(area, { key: "Enter" });
  await waitFor(() => expect(area.value).toBe(""));
  expect(screen.queryByRole("alert")).toBeNull();
  type("next");
  resolve(Response.json({ agents }));
  if (does === "sends") {
    const sent = { task: "go", when: "queue", agent };
    await waitFor(() => expect(request).toHaveBeenCalledWith("/api/v1/sessions/s/task", sent));
    expect(area.value).toBe("next");
  } else {
    expect((await screen.findByRole("alert")).textContent).toBe("Nothing was sent: choose who answers.");
    expect(area.value).toBe("go\nnext");
    expect(request).not.toHaveBeenCalledWith("/api/v1/sessions/s/task", expect.anything());
  }
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
  const { request, resolve, area, type, then } = show({ status: "running" });
  expect(screen.queryByText("Steer")).toBeNull();
  type("next");
  expect(screen.getByRole<HTMLInputElement>("radio", { name: /^Queue/ }).checked).toBe(true);
  fireEvent.click(screen.getByRole("radio", { name: /^Steer/ }));
  fireEvent.keyDown(area, { key: "Enter" });
  await waitFor(() =>
    expect(request).toHaveBeenCalledWith("/api/v1/sessions/s/task", {
      task: "next",
      when: "steer",
      agent: "bot",
    }),
  );
  resolve(Response.json({ status: "waiting", input_id: "a", note: "the agent bot takes no input" }));
  const input = { id: "a", status: "waiting", thread: "main", when: "queue" } as const;
  then({ status: "running" }, [input]);
  expect((await screen.findByRole("status")).textContent).toBe("The agent bot takes no input.");
  then({ status: "running" }, [{ ...input, status: "started" }]); // it no longer waits
  expect(screen.queryByRole("status")).toBeNull();
  type("after");
  expect(screen.getByRole<HTMLInputElement>("radio", { name: /^Queue/ }).checked).toBe(true);
});

it("names the outside program that a message is for", async () => {
  const { request, type, area } = show({ status: "running", agent: "my-loop" }, [
    { id: "a", text: "text a", status: "waiting", thread: "main", when: "queue", agent: "my-loop", outside: true },
  ]);
  expect(screen.getByRole("listitem").textContent).toBe("Queuedtext auntil my-loop takes it");
  expect(screen.getByText("my-loop works outside of this server, and gets the message when it asks.")).toBeTruthy();
  type("next");
  fireEvent.keyDown(area, { key: "Enter" });
  await waitFor(() =>
    expect(request).toHaveBeenCalledWith("/api/v1/sessions/s/task", { task: "next", when: "queue", agent: "my-loop" }),
  );
});

it("sends to the program of the thread between its runs only if the user chooses it", async () => {
  const { request, type, area } = show({ status: "complete", agent: "my-loop" });
  type("next");
  fireEvent.keyDown(area, { key: "Enter" });
  expect(await screen.findByText(/Nothing was sent/)).toBeTruthy();
  fireEvent.change(screen.getByLabelText("Agent that answers"), { target: { value: "my-loop" } });
  expect(screen.getByText("my-loop works outside of this server, and gets the message when it asks.")).toBeTruthy();
  fireEvent.keyDown(area, { key: "Enter" });
  await waitFor(() =>
    expect(request).toHaveBeenCalledWith("/api/v1/sessions/s/task", { task: "next", when: "queue", agent: "my-loop" }),
  );
});

it("shows what waits for a program between its runs, withdraws it, and queues what is sent behind it", async () => {
  const waits = { text: "text a", status: "waiting", thread: "main", when: "queue", outside: true } as const;
  const { request, type, area } = show({ status: "complete", agent: "my-loop" }, [
    { ...waits, id: "a", agent: "my-loop" },
  ]);
  expect(screen.getByRole("listitem").textContent).toBe("Queuedtext auntil my-loop takes it");
  expect(screen.getByText("my-loop works outside of this server, and gets the message when it asks.")).toBeTruthy();
  type("next");
  fireEvent.keyDown(area, { key: "Enter" });
  await waitFor(() =>
    expect(request).toHaveBeenCalledWith("/api/v1/sessions/s/task", { task: "next", when: "queue", agent: "my-loop" }),
  );
  fireEvent.click(screen.getByRole("button", { name: "Withdraw" }));
  await waitFor(() => expect(request).toHaveBeenCalledWith("/api/v1/sessions/s/inputs/a", "DELETE"));
});

it("has no field for a session that was deleted", () => {
  expect(() => show(undefined, undefined, undefined, true)).toThrow("Message to the agent");
  expect(screen.getByText(/This session was deleted/)).toBeTruthy();
  expect(screen.queryByRole("textbox")).toBeNull();
});

it.each([
  ["deleted", {}, true],
  ["closed", { closed: true }, false],
])("keeps what was typed in a session that is %s meanwhile, to be copied", (_, session, deleted) => {
  sessionStorage.setItem("tapedeck.draft.s", "two\nlines");
  expect(() => show(undefined, undefined, session, deleted)).toThrow("Message to the agent");
  const kept = screen.getByLabelText<HTMLTextAreaElement>("Your message was not sent:");
  expect([kept.value, kept.readOnly]).toEqual(["two\nlines", true]);
  expect(screen.getByRole("button", { name: "Copy the message" })).toBeTruthy();
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

it.each([
  ["Stop", { status: "running", invocation: "i1" }, { status: "complete", invocation: "i1" }],
  ["Resume", { status: "failed", invocation: "i1" }, { status: "running", invocation: "i2" }],
] as const)(
  "forgets why it could not %s when the run is another one, or has another status",
  async (button, run, next) => {
    const { request, resolve, then } = show(run);
    fireEvent.click(screen.getByRole("button", { name: button }));
    await waitFor(() => expect(request).toHaveBeenCalled());
    resolve(Response.json({ error: { kind: "conflict", message: "ses_1 is busy" } }, { status: 409 }));
    expect((await screen.findByRole("alert")).textContent).toBe("ses_1 is busy");
    then(next);
    await waitFor(() => expect(screen.queryByRole("alert")).toBeNull());
  },
);

it("forgets why a message was not sent when the message is given up", async () => {
  const { request, resolve, area, type } = show();
  type("go");
  fireEvent.keyDown(area, { key: "Enter" });
  await waitFor(() => expect(request).toHaveBeenCalled());
  resolve(Response.json({ error: { kind: "invalid", message: "no" } }, { status: 400 }));
  await screen.findByRole("alert");
  expect(area.value).toBe("go");
  type("");
  await waitFor(() => expect(screen.queryByRole("alert")).toBeNull());
});

const picker = () => screen.getByRole<HTMLSelectElement>("combobox", { name: "Agent that answers" });

it("names the agent that will answer, and sends to the one that was picked", async () => {
  const { request, area, type } = show();
  expect(picker().value).toBe("bot");
  expect(area.placeholder).toBe("Give bot a task");
  fireEvent.change(picker(), { target: { value: "coder" } });
  fireEvent.change(screen.getByRole("combobox", { name: "Model of coder" }), { target: { value: "large" } });
  type("go");
  fireEvent.keyDown(area, { key: "Enter" });
  const sent = { task: "go", when: "queue", agent: "coder", config: { model: "large" } };
  await waitFor(() => expect(request).toHaveBeenCalledWith("/api/v1/sessions/s/task", sent));
  expect(screen.getByRole<HTMLOptionElement>("option", { name: "away (cannot run here)" }).disabled).toBe(true);
});

it.each([
  ["a session without an agent", {}, /Choose who answers/],
  ["a session whose agent is not here", { agent: "claude-code" }, /no agent claude-code/],
])("asks who answers: %s", async (_, session, why) => {
  const { request, area, type } = show(undefined, undefined, session);
  expect(screen.getByText(why)).toBeTruthy();
  type("go");
  fireEvent.keyDown(area, { key: "Enter" });
  expect(screen.getByRole("alert").textContent).toBe("Nothing was sent: choose who answers.");
  expect(document.activeElement).toBe(picker());
  expect(area.value).toBe("go");
  expect(request).not.toHaveBeenCalled();
  type("");
  expect(screen.queryByRole("alert")).toBeNull(); // there is nothing to send
  type("go");
  fireEvent.keyDown(area, { key: "Enter" });
  expect(screen.getByRole("alert")).toBeTruthy();
  fireEvent.change(picker(), { target: { value: "bot" } });
  expect(screen.queryByRole("alert")).toBeNull();
  fireEvent.keyDown(area, { key: "Enter" });
  await waitFor(() => expect(request).toHaveBeenCalled());
});

it("lets the agent answer that answered last", () => {
  show({ status: "complete", agent: "coder" });
  expect(picker().value).toBe("coder");
});
