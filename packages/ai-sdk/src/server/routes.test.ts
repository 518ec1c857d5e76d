import { createClient } from "@tapedeck/client";
import { beforeEach, expect, test } from "vitest";
import { FakeServer } from "../../../client/src/server.fake.ts";
import { type Routes, routesOf } from "./routes.ts";

let server: FakeServer;
let routes: Routes;

beforeEach(() => {
  server = new FakeServer();
  routes = routesOf(createClient(server.options()), (_, chat) => chat.startsWith("ada-"));
});

const ask = (path: string, method: "GET" | "POST" = "GET") =>
  routes[method](new Request(`http://page/api/chat${path}`, { method }));

test.each([
  ["/%zz/messages", "GET", 400],
  ["/ada-1/messages", "POST", 404],
  ["/ada-1/stop", "GET", 404],
  ["/ada-1/events", "GET", 404],
  ["/bob-1/messages", "GET", 403],
  ["/bob-1/stop", "POST", 403],
  ["/api/v1/sessions/bob-1/stream", "GET", 403],
  ["/api/v1/sessions/ada-1/events", "GET", 404],
] as const)("%s by %s is refused with %s, and nothing is sent", async (path, method, status) => {
  const answer = await ask(path, method);
  expect(answer.status).toBe(status);
  expect(await answer.json()).toMatchObject({ error: { message: expect.any(String) } });
  expect(server.connections).toHaveLength(0);
});

test("only what a page needs is passed on, in both directions", async () => {
  const done = ask("/api/v1/sessions/ada-%2F1/stream?fromOffset=3&presence=live&channel=all");
  await server.settle();
  expect(server.newest.url.href).toBe("http://server/api/v1/sessions/ada-%2F1/stream?fromOffset=3");
  server.newest.open({ "Set-Cookie": "a=b", "Tapedeck-Api": "1" });
  const { headers } = await done;
  expect([headers.get("Set-Cookie"), headers.get("Tapedeck-Api")]).toEqual([null, "1"]);
});

test("a server that is away is a typed error of the page", async () => {
  const done = ask("/ada-1/messages");
  await server.settle();
  server.newest.break();
  const answer = await done;
  expect(answer.status).toBe(502);
  expect(await answer.json()).toMatchObject({ error: { kind: "unreachable" } });
});
