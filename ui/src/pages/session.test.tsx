// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createMemoryHistory, RouterProvider } from "@tanstack/react-router";
import { FakeServer } from "@tapedeck/client/testing-server";
import { act, cleanup, render, screen } from "@testing-library/react";
import { type ComponentType, createElement, type MemoExoticComponent, memo, Profiler } from "react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

type Any = MemoExoticComponent<ComponentType<object>> & { compare?: null };
const drawn = vi.hoisted(() => new Map<string, number>());

/** A component that counts its commits, and is drawn again exactly when the original is. */
function counted(name: string, original: unknown) {
  const { type, compare } = original as Any; // of a memo: a component without one has neither
  if (type === undefined) throw new Error(`${name} is not a memo`);
  const count = () => drawn.set(name, (drawn.get(name) ?? 0) + 1);
  const draw = (props: object) => (
    <Profiler id={name} onRender={count}>
      {createElement(type, props)}
    </Profiler>
  );
  return memo(draw, compare ?? undefined);
}
vi.mock("@/components/session/header", async (load) => {
  const all = await load<typeof import("@/components/session/header")>();
  return { ...all, SessionHeader: counted("header", all.SessionHeader) };
});
vi.mock("@/components/session/view-tabs", async (load) => {
  const all = await load<typeof import("@/components/session/view-tabs")>();
  return { ...all, isWide: () => true, ViewTabs: counted("tabs", all.ViewTabs) };
});
vi.mock("@/components/session/panels", async (load) => {
  const all = await load<typeof import("@/components/session/panels")>();
  return { ...all, Panels: counted("panels", all.Panels) };
});

let server: FakeServer;
const log = [
  { type: "session.created", channel: "session", data: { title: "A trip", agent: "bot" } },
  {
    type: "RUN_STARTED",
    channel: "agentState",
    thread: "main",
    invocation: "i1",
    data: { threadId: "main", runId: "i1" },
  },
  {
    type: "message.added",
    channel: "chunks",
    thread: "main",
    invocation: "i1",
    data: { message: { id: "u1", role: "user", content: "Go" } },
  },
  {
    type: "TOOL_CALL_START",
    channel: "toolCalls",
    thread: "main",
    invocation: "i1",
    data: { toolCallId: "c1", toolCallName: "Read" },
  },
  { type: "TOOL_CALL_END", channel: "toolCalls", thread: "main", invocation: "i1", data: { toolCallId: "c1" } },
  {
    type: "TEXT_MESSAGE_START",
    channel: "chunks",
    thread: "main",
    invocation: "i1",
    data: { messageId: "m1", role: "assistant" },
  },
].map((e, offset) => ({ ...e, offset, timestamp: `2026-01-05T12:00:0${offset}.000Z` }));

function serve(path: string, c: FakeServer["newest"]): void {
  if (path === "/sessions/s")
    c.reply(200, { id: "s", kind: "session", head: log.length, title: "A trip", status: "running" });
  else if (path === "/sessions/s/events")
    c.reply(200, { events: log, next: log.length, head: log.length, closed: false });
  else if (path === "/sessions/s/stream") c.open().frame("caught-up", { next: log.length });
  else if (path === "/agents") c.reply(200, { agents: [{ name: "bot", kind: "script" }] });
  else c.reply(404, { error: { kind: "not_found", message: "not there" } });
}

/** Answers each request at once. */
function fetched(...args: Parameters<typeof fetch>): Promise<Response> {
  const answer = (server.options().fetch as typeof fetch)(...args);
  const c = server.newest;
  serve(c.url.pathname.replace("/api/v1", ""), c);
  return answer;
}

const turns = async (n: number) => {
  for (let i = 0; i < n; i++) await act(() => new Promise<void>((ok) => setImmediate(ok)));
};

/** Waits for something that needs no timer. The time limit of the test ends it. */
const until = async (holds: () => unknown) => {
  while (!holds()) await turns(1);
};

beforeEach(() => {
  server = new FakeServer();
  vi.stubGlobal("fetch", fetched);
  vi.stubGlobal("matchMedia", () => ({ matches: true, addEventListener() {}, removeEventListener() {} }));
  vi.stubGlobal("requestAnimationFrame", (f: () => void) => setImmediate(f));
  vi.stubGlobal(
    "ResizeObserver",
    class {
      observe() {}
      unobserve() {}
      disconnect() {}
    },
  );
});
afterEach(() => {
  vi.useRealTimers();
  cleanup();
  vi.unstubAllGlobals();
});

it("draws neither the header nor the tabs nor the panels for a token", async () => {
  const { router } = await import("@/router");
  await import("./session"); // not while the page waits for it
  // Totals are loaded and numbers change once a second, whatever happens: here only when the test says so.
  vi.useFakeTimers({ toFake: ["setTimeout", "setInterval", "Date"] });
  const history = createMemoryHistory({ initialEntries: ["/s/s"] });
  router.update({ ...router.options, history });
  render(
    <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
      <RouterProvider router={router} />
    </QueryClientProvider>,
  );
  const streams = () => server.connections.filter((c) => c.url.pathname.endsWith("/stream"));
  await until(() => screen.queryByText("A trip") && screen.queryByText("Connected, caught up"));
  expect(streams()).toHaveLength(1);
  for (let i = 0; i < 3; i++) {
    await act(() => vi.advanceTimersByTime(1000));
    await turns(10);
  }
  expect([...drawn.keys()].sort()).toEqual(["header", "panels", "tabs"]);
  const [stream] = streams();
  const tokens = 40;
  for (let i = 0; i < tokens; i++) {
    const data = { messageId: "m1", delta: `word${i} ` };
    const e = { ...log[5], type: "TEXT_MESSAGE_CONTENT", offset: log.length + i, data };
    stream?.event(e);
    await turns(i === 0 ? 20 : 2);
    if (i === 0) drawn.clear(); // the first one after a second changes the number of events
  }
  for (const name of ["header", "tabs", "panels"]) expect([name, drawn.get(name) ?? 0]).toEqual([name, 0]);
  const count = () => document.querySelector(`[data-tab="events"]`)?.textContent;
  await act(() => vi.advanceTimersByTime(1000)); // the number of events changes once a second: they were there
  await until(() => count() === `Events${log.length + tokens}`);
}, 300_000);
