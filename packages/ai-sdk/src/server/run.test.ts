import { expect, test } from "vitest";
import { FakeServer } from "../../../client/src/server.fake.ts";
import { createTapedeck } from "./index.ts";

test.each([
  ["the page names", "7", 5, "7"],
  ["the option has, if the page names none", null, 5, "5"],
  ["all pages understand, if nobody names one", null, undefined, "6"],
] as const)("a run answers in the version that %s", async (_, named, version, want) => {
  const server = new FakeServer();
  const td = createTapedeck({ ...server.options(), ...(version && { version }) });
  const headers = new Headers(named ? { "Tapedeck-AI-SDK-Version": named } : {});
  const beginning = td.run("c", { messages: [], headers });
  await server.settle();
  server.newest.reply(200, { message: "m", from: 0 });
  const run = await beginning;
  const answering = run.respond(new ReadableStream());
  await server.settle();
  const asked = server.connections.find((c) => c.url.pathname.endsWith("/stream") && c.url.searchParams.has("message"));
  expect(asked?.headers.get("Tapedeck-AI-SDK-Version")).toBe(want);
  asked?.open();
  expect((await answering).status).toBe(200);
});
