import { beforeEach, describe, expect, test, vi } from "vitest";
import { type Client, createClient } from "./client.ts";
import { TapedeckError } from "./errors.ts";
import { FakeServer } from "./server.fake.ts";

let server: FakeServer;
let client: Client;

beforeEach(() => {
  server = new FakeServer();
  client = createClient(server.options());
});

/** Makes a call, and answers its requests one after the other. */
async function answered<T>(call: () => Promise<T>, ...replies: ((c: FakeServer["newest"]) => void)[]): Promise<T> {
  const done = call();
  done.catch(() => undefined);
  for (const [i, reply] of replies.entries()) {
    await server.settle();
    expect(server.connections).toHaveLength(i + 1);
    reply(server.newest);
  }
  return done;
}

const sent = () => server.connections.map((c) => `${c.method} ${c.url.pathname}${c.url.search} ${c.body ?? ""}`.trim());

test("an empty id of a token revokes nothing", async () => {
  const done = answered(
    () => client.api.revokeToken("a", ""),
    (c) => c.reply(404, { error: { kind: "not_found", message: "there is nothing here" } }),
  );
  await expect(done).rejects.toThrow(TapedeckError);
  expect(sent()).toEqual(["DELETE /api/v1/sessions/a/tokens/"]);
});

describe("the address", () => {
  test.each([
    ["http://h:4747", "http://h:4747/api/v1/agents"],
    ["http://h:4747/", "http://h:4747/api/v1/agents"],
    [new URL("https://h/deck/?x=1#y"), "https://h/deck/api/v1/agents"],
  ])("%s", async (url, want) => {
    const { agents } = createClient(server.options({ url })).api;
    await answered(
      () => agents(),
      (c) => c.reply(200, { agents: [] }),
    );
    expect(server.newest.url.href).toBe(want);
  });

  test.each([
    ["localhost:4747", /not one of http or https/],
    ["http://", /is not a URL/],
    ["http://ada:secret@h/", /contains a user or a password/],
  ])("%s is refused with a sentence", (url, message) => {
    expect(() => createClient({ url })).toThrow(message);
    expect(() => createClient({ url })).toThrow(TapedeckError);
  });

  test("a relative one is made where there is no page, and a request with it is refused there", async () => {
    const client = createClient(server.options({ url: "/deck" }));
    await expect(client.api.agents()).rejects.toMatchObject({
      kind: "invalid",
      message: expect.stringContaining("is relative"),
    });
    expect(server.connections).toHaveLength(0);
    vi.stubGlobal("location", { href: "https://page.example/chat" });
    await answered(
      () => client.api.agents(),
      (c) => c.reply(200, { agents: [] }),
    );
    expect(server.newest.url.href).toBe("https://page.example/deck/api/v1/agents");
    vi.unstubAllGlobals();
  });
});

describe("workflows", () => {
  test("their requests", async () => {
    const { api } = client;
    const calls = [
      () => api.workflow("a b", "sha256:1"),
      () => api.putWorkflow("t", "<x/>"),
      () => api.removeWorkflow("t"),
      () => api.checkWorkflow({ bpmn: "<x/>" }),
      () => api.runWorkflow({ name: "t", variables: { cve: 1 } }),
      () => api.message("s", { name: "Paid" }),
      () => api.answer("s", { id: "p", offset: 3 }, "submit", { input: { note: "x" } }),
    ];
    for (const call of calls) {
      const done = call();
      await server.settle();
      server.newest.reply(200, {});
      await done;
    }
    expect(sent()).toEqual([
      "GET /api/v1/workflows/a%20b?version=sha256%3A1",
      'PUT /api/v1/workflows/t {"bpmn":"<x/>"}',
      "DELETE /api/v1/workflows/t",
      'POST /api/v1/workflows/check {"bpmn":"<x/>"}',
      'POST /api/v1/workflows/run {"name":"t","variables":{"cve":1}}',
      'POST /api/v1/sessions/s/messages {"name":"Paid"}',
      'POST /api/v1/sessions/s/permissions/p {"option":"submit","input":{"note":"x"},"offset":3}',
    ]);
  });

  test("a refused diagram has all its problems", async () => {
    const problems = [{ line: 4, element: "t", message: "it leads nowhere" }, null, { line: 5 }];
    const refused = answered(
      () => client.api.checkWorkflow({ bpmn: "<x/>" }),
      (c) => c.reply(400, { error: { kind: "invalid", message: "line 4: no", problems } }),
    );
    await expect(refused).rejects.toMatchObject({ problems: [problems[0]] });
  });
});

describe("errors", () => {
  const call = () => client.session("s").info();

  test("the server's own", async () => {
    const refused = answered(call, (c) =>
      c.reply(409, { error: { kind: "conflict", message: "it is busy", hint: "wait" } }),
    );
    await expect(refused).rejects.toMatchObject({
      name: "TapedeckError",
      kind: "conflict",
      message: "it is busy",
      hint: "wait",
      status: 409,
      retryable: false,
    });
  });

  test.each([
    [502, "unavailable", true],
    [507, "unavailable", true], // the storage is full
    [500, "internal", true],
    [429, "limited", true],
    [408, "invalid", true],
    [404, "not_found", false],
    [401, "unauthorized", false],
  ])("the page of a proxy with status %s", async (status, kind, retryable) => {
    const refused = answered(call, (c) => c.reply(status, "<html>oops"));
    await expect(refused).rejects.toMatchObject({ kind, status, retryable });
  });

  test("HTML where JSON was expected", async () => {
    const refused = answered(call, (c) => c.reply(200, "<html>Welcome to the hotel"));
    await expect(refused).rejects.toMatchObject({
      kind: "protocol",
      message: "the server answered with text/html, not with JSON",
      hint: "a proxy may have answered: is a Tapedeck server at this address?",
    });
  });

  test.each(["null", "[]", '"down for maintenance"'])("JSON of somebody else: %s", async (body) => {
    const refused = answered(call, (c) => c.reply(200, body, { "Content-Type": "application/json" }));
    await expect(refused).rejects.toMatchObject({ kind: "protocol", message: /not with a JSON object/ });
  });

  test("a status of 204 where an answer was expected", async () => {
    const refused = answered(call, (c) => c.reply(204));
    await expect(refused).rejects.toMatchObject({ kind: "protocol", message: /no content type, not with JSON/ });
  });

  test("storage that is full, in the words of the server", async () => {
    const error = { kind: "unavailable", message: "the disk is full", hint: "free some space" };
    const refused = answered(call, (c) => c.reply(503, { error }, { "Retry-After": "2" }));
    await expect(refused).rejects.toMatchObject({ ...error, status: 503, retryable: true, retryAfterMs: 2000 });
  });

  test.each([
    ["7", 7000],
    ["-5", 0],
    ["9e99", 300_000], // a timer of more than 24 days runs at once
    ["Infinity", 300_000],
    ["Thu, 01 Jan 2026 00:00:09 GMT", 9000], // by the clock of the server: that of a device may be off
    ["Wed, 31 Dec 2025 00:00:00 GMT", 0],
    ["Thu, 01 Jan 2099 00:00:00 GMT", 300_000],
    ["soon", undefined],
  ])("Retry-After: %s", async (value, retryAfterMs) => {
    const headers = { "Retry-After": value, Date: "Thu, 01 Jan 2026 00:00:00 GMT" };
    const refused = answered(call, (c) => c.reply(503, "<html>busy", headers));
    await expect(refused).rejects.toMatchObject({ retryAfterMs });
  });

  test("an answer of 10 MB", async () => {
    const title = "x".repeat(10_000_000);
    const got = await answered(call, (c) => c.reply(200, { id: "s", title }));
    expect(got.title).toHaveLength(title.length);
  });

  test("JSON that has an error", async () => {
    const refused = answered(call, (c) => c.reply(200, '{"id":', { "Content-Type": "application/json" }));
    await expect(refused).rejects.toMatchObject({ kind: "protocol", message: /JSON that has an error/ });
  });

  test("an answer that is cut off", async () => {
    const refused = answered(call, (c) => c.open({ "Content-Type": "application/json" }).write('{"id":').lose());
    await expect(refused).rejects.toMatchObject({ kind: "unreachable", status: 0, retryable: true });
  });

  test("no connection", async () => {
    const refused = answered(call, (c) => c.break());
    await expect(refused).rejects.toMatchObject({ kind: "unreachable", hint: "check that it is running" });
  });

  test.each([
    ["2", "update this client, or load the page again"],
    ["0", "update the server"],
  ])("a server of generation %s", async (generation, hint) => {
    const refused = answered(call, (c) => c.reply(200, { id: "s" }, { "Tapedeck-Api": generation }));
    await expect(refused).rejects.toMatchObject({ kind: "version", hint });
  });

  test("headers that cannot be had", async () => {
    const lost = createClient(server.options({ headers: () => Promise.reject(new Error("the login is down")) }));
    const refused = lost.api.agents();
    await expect(refused).rejects.toMatchObject({ kind: "unreachable", hint: "the login is down", retryable: true });
  });

  test("an aborted call fails with the reason of its signal", async () => {
    const stop = new AbortController();
    const done = client.session("s").info({ signal: stop.signal });
    done.catch(() => undefined);
    await server.settle();
    stop.abort(new Error("enough"));
    await expect(done).rejects.toThrow("enough");
  });
});

test("an abort ends the wait for headers, and nothing is sent", async () => {
  const waiting = createClient(server.options({ headers: () => new Promise(() => undefined) }));
  const stop = new AbortController();
  const done = waiting.session("s").info({ signal: stop.signal });
  done.catch(() => undefined);
  await server.settle();
  stop.abort(new Error("enough"));
  await expect(done).rejects.toThrow("enough");
  await expect(waiting.session("s").info({ signal: stop.signal })).rejects.toThrow("enough");
  expect(server.connections).toHaveLength(0);
});

describe("headers", () => {
  test("a token is renewed once, and the request is sent again", async () => {
    let token = 0;
    client = createClient(server.options({ headers: () => ({ Authorization: `Bearer ${++token}` }) }));
    const started = await answered(
      () => client.session("s").task("go"),
      (c) => c.refuse(401, "unauthorized"),
      (c) => c.reply(202, { session_id: "s", invocation_id: "i", status: "running", offset: 1 }),
    );
    expect(started.invocation_id).toBe("i");
    expect(server.connections.map((c) => c.headers.get("Authorization"))).toEqual(["Bearer 1", "Bearer 2"]);
    expect(sent()).toEqual([
      'POST /api/v1/sessions/s/task {"task":"go"}',
      'POST /api/v1/sessions/s/task {"task":"go"}',
    ]);
  });

  test("the same token is not sent again", async () => {
    client = createClient(server.options({ headers: () => ({ Authorization: "Bearer same" }) }));
    const refused = answered(
      () => client.session("s").info(),
      (c) => c.refuse(401, "unauthorized"),
    );
    await expect(refused).rejects.toMatchObject({ kind: "unauthorized" });
  });

  test("an append carries its conditions", async () => {
    await answered(
      () =>
        client
          .session("s")
          .append([{ type: "acme.note" }], { ifMatch: 8, producer: { id: "importer", epoch: 0, seq: 3 } }),
      (c) => c.reply(200, { first: 8, last: 8, head: 9 }),
    );
    const { headers } = server.newest;
    const names = ["If-Match", "Producer-Id", "Producer-Epoch", "Producer-Seq", "Content-Type"];
    expect(names.map((n) => headers.get(n))).toEqual(["8", "importer", "0", "3", "application/json"]);
    expect(sent()).toEqual(['POST /api/v1/sessions/s/events [{"type":"acme.note"}]']);
  });
});

describe("lists are read page by page", () => {
  async function all<T>(list: AsyncIterable<T>): Promise<T[]> {
    const out: T[] = [];
    for await (const item of list) out.push(item);
    return out;
  }

  test("sessions", async () => {
    const list = await answered(
      () => all(client.sessions({ owner: "ada", limit: 1 })),
      (c) => c.reply(200, { sessions: [{ id: "b" }], next: "n" }),
      (c) => c.reply(200, { sessions: [{ id: "a" }] }),
    );
    expect(list.map((s) => s.id)).toEqual(["b", "a"]);
    expect(sent()).toEqual([
      "GET /api/v1/sessions?owner=ada&limit=1",
      "GET /api/v1/sessions?owner=ada&limit=1&cursor=n",
    ]);
  });

  test("hits", async () => {
    const list = await answered(
      () => all(client.search("login")),
      (c) => c.reply(200, { hits: [{ offset: 7 }], next: "20" }),
      (c) => c.reply(200, { hits: [{ offset: 9 }] }),
    );
    expect(list.map((h) => h.offset)).toEqual([7, 9]);
  });

  test("events, to the head", async () => {
    const list = await answered(
      () => all(client.session("s").events({ from: 3 })),
      (c) => c.reply(200, { events: [{ offset: 3 }, { offset: 4 }], next: 5, head: 6, closed: false }),
      (c) => c.reply(200, { events: [{ offset: 5 }], next: 6, head: 6, closed: false }),
    );
    expect(list.map((e) => e.offset)).toEqual([3, 4, 5]);
    expect(sent()).toEqual([
      "GET /api/v1/sessions/s/events?limit=1000&from=3",
      "GET /api/v1/sessions/s/events?limit=1000&from=5",
    ]);
  });
});

describe("a producer", () => {
  const numbers = () => server.connections.map((c) => c.headers.get("Producer-Seq"));
  const stored = { head: 1 };

  test("repeats an append until it has an answer, and keeps the order", async () => {
    const { environment } = server;
    const p = client.session("s").producer("importer", { epoch: 2, environment });
    const both = Promise.all([p.append({ type: "a" }), p.append({ type: "b" })]);
    await server.settle();
    server.newest.break(); // stored or not: the producer cannot know
    await server.pass(250);
    server.newest.reply(503, "<html>starting");
    await server.pass(500);
    server.newest.reply(200, { ...stored, duplicate: true });
    await server.settle();
    server.newest.reply(200, stored);
    expect(await both).toEqual([{ head: 1, duplicate: true }, { head: 1 }]);
    expect(numbers()).toEqual(["0", "0", "0", "1"]);
    expect(server.newest.headers.get("Producer-Epoch")).toBe("2");
  });

  test("a refusal is not repeated, and its number is used again", async () => {
    const p = client.session("s").producer("importer", { environment: server.environment });
    const refused = p.append({});
    refused.catch(() => undefined);
    await server.settle();
    server.newest.refuse(400, "invalid");
    await expect(refused).rejects.toMatchObject({ kind: "invalid" });
    const next = p.append({ type: "a" });
    await server.settle();
    server.newest.reply(200, stored);
    await next;
    expect(numbers()).toEqual(["0", "0"]);
  });

  test("an abort ends the wait", async () => {
    const stop = new AbortController();
    const p = client.session("s").producer("x", { environment: server.environment, signal: stop.signal });
    const done = p.append({ type: "a" });
    done.catch(() => undefined);
    await server.settle();
    server.newest.break();
    await server.settle();
    stop.abort(new Error("enough"));
    await expect(done).rejects.toThrow("enough");
  });
});

test("the verbs of a session are the requests of docs/http.md", async () => {
  const s = client.session("a/b");
  const calls: [() => Promise<unknown>, string][] = [
    [() => s.cancel(), "POST cancel"],
    [() => s.cancel("i1"), 'POST cancel {"invocation":"i1"}'],
    [() => s.resume(), "POST resume {}"],
    [() => s.answer("p1", "allow"), 'POST permissions/p1 {"option":"allow"}'],
    [() => s.answer({ id: "p1", offset: 7 }, "no"), 'POST permissions/p1 {"option":"no","offset":7}'],
    [() => s.answer("p1"), 'POST events {"type":"permission.answered","data":{"id":"p1","outcome":"cancelled"}}'],
    [() => s.rewind({ before: "i1" }), 'POST rewind {"before_invocation_id":"i1"}'],
    [() => s.rewind({ offset: 4 }), 'POST rewind {"to_offset":4}'],
    [() => s.undo(), "POST undo"],
    [() => s.undo("rew_1"), 'POST undo {"marker":"rew_1"}'],
    [() => s.clear("main"), 'POST clear {"thread":"main"}'],
    [() => s.fork({ at: 3 }), 'POST fork {"at":3}'],
    [() => s.close(), "POST close"],
    [() => s.rename("x"), 'PATCH  {"title":"x"}'],
    [() => s.delete(), "DELETE "],
    [() => s.snapshot({ at: 3 }), "GET snapshot?at=3"],
  ];
  for (const [call, want] of calls) {
    server.connections.length = 0;
    await answered(call, (c) => (want === "DELETE " ? c.reply(204) : c.reply(200, { id: "new" })));
    const [method, rest] = want.split(/ (.*)/);
    const path = rest ? `/${rest}` : "";
    expect(sent()[0]).toBe(`${method} /api/v1/sessions/a%2Fb${rest?.startsWith(" ") ? rest : path}`);
  }
});
