import { type Client, createClient } from "@tapedeck/client";
import { createPlayer } from "@tapedeck/client/player";
import { FakeServer } from "@tapedeck/client/testing";
import { act, cleanup, render, renderHook, waitFor } from "@testing-library/react";
import { type ReactNode, StrictMode } from "react";
import { renderToString } from "react-dom/server";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { TapedeckProvider, useBranches, useClient, usePlayer, usePresence, useSession, useSessions } from "./index.ts";

let server: FakeServer;
let client: Client;
const log = [
  { type: "session.created", channel: "session", data: { title: "A trip" } },
  { type: "message.added", channel: "chunks", data: { message: { id: "u1", role: "user", content: "Hello" } } },
].map((e, offset) => ({ ...e, offset, timestamp: `2026-01-05T12:00:0${offset}.000Z` }));

/** Answers what a player asks of a session with the events of `log`. */
function serve(pathname: string, c: FakeServer["newest"]): void {
  const path = pathname.replace("/api/v1/sessions", "");
  if (path === "/s") c.reply(200, { id: "s", kind: "session", head: log.length });
  else if (path.endsWith("/events")) c.reply(200, { events: log, next: log.length, head: log.length, closed: false });
  else if (path.endsWith("/replay-index")) c.reply(404, { error: { kind: "not_found", message: "no index" } });
  else if (path.endsWith("/stream")) c.open().frame("caught-up", { next: log.length });
  else if (path.endsWith("/snapshot")) c.reply(503, { error: { kind: "unavailable", message: "not needed" } });
  else if (path.endsWith("/task")) c.reply(202, { session_id: "s", invocation_id: "i1", status: "running", offset: 2 });
  else if (path.endsWith("/cancel")) c.reply(200, {});
  else if (path.endsWith("/presence")) c.reply(200, { present: [] });
  else if (path.endsWith("/branches")) c.reply(200, { at: 2, branches: [{ id: "s" }] });
}

let answered = 0;
async function settle(): Promise<void> {
  for (let i = 0; i < 10; i++) {
    await act(async () => {
      for (; answered < server.connections.length; answered++) {
        const c = server.connections[answered]!;
        serve(c.url.pathname, c);
      }
      await server.settle();
    });
  }
}

beforeEach(() => {
  answered = 0;
  server = new FakeServer();
  client = createClient(server.options());
  vi.stubGlobal("requestAnimationFrame", (f: () => void) => setImmediate(f));
});
afterEach(cleanup);

const wrapper = ({ children }: { children: ReactNode }) => (
  <StrictMode>
    <TapedeckProvider client={client}>{children}</TapedeckProvider>
  </StrictMode>
);
const paths = () => server.connections.map((c) => `${c.method} ${c.url.pathname.replace("/api/v1", "")}`);
const stream = () => server.connections.findLast((c) => c.url.pathname.endsWith("/stream"))!;

test("a session is loaded, followed, and closed with its last user", async () => {
  const { result, unmount } = renderHook(() => useSession("s"), { wrapper });
  expect(result.current).toMatchObject({ messages: [], loading: true, status: undefined });
  await settle();
  await waitFor(() => expect(result.current.messages.map((m) => m.text)).toEqual(["Hello"]));
  expect(result.current).toMatchObject({ loading: false, connection: { state: "caught-up" } });
  const more = { type: "message.added", channel: "chunks", timestamp: "2026-01-05T12:00:03.000Z" };
  stream().event({ ...more, offset: 2, data: { message: { id: "u2", role: "user", content: "More" } } } as never);
  await waitFor(() => expect(result.current.messages.map((m) => m.text)).toEqual(["Hello", "More"]));
  expect(paths().filter((p) => p.endsWith("/stream"))).toHaveLength(1); // StrictMode mounts twice
  unmount();
  await waitFor(() => expect(stream().aborted).toBe(true));
});

test("two hooks of a page share one stream", async () => {
  renderHook(() => [useSession("s"), useSession("s"), usePresence("s")], { wrapper });
  await settle();
  expect(paths().filter((p) => p.endsWith("/stream"))).toHaveLength(1);
});

test("actions send requests, and keep their identity", async () => {
  const { result } = renderHook(() => useSession("s"), { wrapper });
  const { submit, stop } = result.current;
  await settle();
  expect(result.current.submit).toBe(submit);
  const started = submit("Go on");
  await settle();
  expect((await started).invocation_id).toBe("i1");
  const body = JSON.parse(String(server.connections.find((c) => c.url.pathname.endsWith("/task"))?.body));
  expect(body).toMatchObject({ task: "Go on", message_id: expect.stringMatching(/^msg_/) });
  void stop();
  await settle();
  expect(paths()).toContain("POST /sessions/s/cancel");
});

test("a session that cannot be loaded has an error", async () => {
  const { result } = renderHook(() => useSession("other"), { wrapper });
  await act(() => server.settle());
  server.newest.refuse(404, "not_found");
  await waitFor(() => expect(result.current.error).toMatchObject({ kind: "not_found" }));
  expect(result.current.loading).toBe(false);
});

test("usePlayer draws only when what it selects changes, also with a new function each time", async () => {
  let drawn = 0;
  const player = createPlayer({ events: log as never }, { frame: (f) => setImmediate(f) });
  const { result } = renderHook(() => {
    drawn++;
    return usePlayer(player, (s) => ({ ids: s.view?.messages.length ?? 0, speed: s.speed }));
  });
  player.open();
  await waitFor(() => expect(result.current.ids).toBe(1));
  const before = drawn;
  const same = result.current;
  await act(async () => {
    player.setSkipIdle(false);
    await server.settle();
  });
  expect(drawn).toBe(before);
  expect(result.current).toBe(same);
  await act(async () => {
    player.setSpeed(4);
    await server.settle();
  });
  await waitFor(() => expect(result.current.speed).toBe(4));
  player.close();
});

test("sessions come page by page, and the first page stays while the next one is loaded", async () => {
  const { result } = renderHook(() => useSessions({ owner: "ada" }, { refreshMs: 0 }), { wrapper });
  await act(() => server.settle());
  for (const c of server.connections) c.reply(200, { sessions: [{ id: "b" }], next: "n" });
  await waitFor(() => expect(result.current.sessions.map((s) => s.id)).toEqual(["b"]));
  const before = server.connections.length;
  act(() => result.current.more?.());
  await act(() => server.settle());
  expect(result.current.sessions.map((s) => s.id)).toEqual(["b"]);
  server.connections[before]!.reply(200, { sessions: [{ id: "b" }], next: "n" });
  await act(() => server.settle());
  server.newest.reply(200, { sessions: [{ id: "a" }] });
  await waitFor(() => expect(result.current.sessions.map((s) => s.id)).toEqual(["b", "a"]));
  expect(result.current.more).toBeUndefined();
  act(() => result.current.refresh());
  await act(() => server.settle());
  server.newest.refuse(503, "unavailable");
  await waitFor(() => expect(result.current.error).toMatchObject({ kind: "unavailable" }));
  expect(result.current.sessions).toHaveLength(2);
});

test("the branches of a session", async () => {
  const { result } = renderHook(() => useBranches("s", { refreshMs: 0 }), { wrapper });
  await settle();
  await waitFor(() => expect(result.current.branches.map((b) => b.id)).toEqual(["s"]));
});

test("presence shows who is there, and shares only a given name", async () => {
  const { result, rerender } = renderHook(({ name }) => usePresence("s", { name }), {
    wrapper,
    initialProps: { name: "" },
  });
  await settle();
  stream().frame("presence", {
    type: "presence.joined",
    timestamp: "",
    data: { user: "bob", cursor: { name: "Bob" } },
  });
  await waitFor(() => expect(result.current.people.map((p) => p.name)).toEqual(["Bob"]));
  expect(paths()).not.toContain("POST /sessions/s/presence");
  rerender({ name: "Ada L" });
  await settle();
  expect(result.current.me).toBe("Ada-L");
  const joined = server.connections.find((c) => c.url.pathname.endsWith("/presence"));
  expect(JSON.parse(String(joined?.body))).toMatchObject({ action: "join", user: "Ada-L" });
});

test("a server renders it, without a request", () => {
  const Page = () => <p>{useSession("s").loading ? "loading" : "loaded"}</p>;
  const html = renderToString(
    <TapedeckProvider client={client}>
      <Page />
    </TapedeckProvider>,
  );
  expect(html).toContain("loading");
  expect(server.connections).toHaveLength(0);
});

test("without a provider the error says what to do", () => {
  const Page = () => <p>{typeof useClient()}</p>;
  vi.spyOn(console, "error").mockReturnValue();
  expect(() => render(<Page />)).toThrow(/put <TapedeckProvider/);
});
