// A page of another origin that uses every endpoint, in a real browser. It works
// with --allow-origin, and fails without.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { Server, visitor } from "./lab.mjs";

/** Another origin, which serves one empty page. */
async function site() {
  const http = createServer((_, response) => {
    response.setHeader("Content-Type", "text/html");
    response.end("<!doctype html><title>Another site</title><link rel=icon href='data:,'>");
  }).listen(0, "127.0.0.1");
  await new Promise((ok) => http.once("listening", ok));
  return { url: `http://127.0.0.1:${http.address().port}`, close: () => http.close() };
}

/** Opens a page of another origin and runs the check. `allow` receives that origin. */
async function fromElsewhere(allow, check) {
  const page = await site();
  const origin = allow(page.url);
  const server = await Server.start(...(origin ? ["--allow-origin", origin] : []));
  try {
    const v = await visitor(page);
    await v.page.goto(page.url);
    await check(v, server);
    v.wrong.splice(0, v.wrong.length, ...v.wrong.filter((w) => !w.startsWith(`foreign request: ${server.url}`)));
    await v.end();
  } finally {
    page.close();
    await server.stop();
  }
}

/** Uses every endpoint, and records the status, or that the browser refused the request. */
const everything = (url) =>
  (async () => {
    const seen = {};
    const ask = async (name, path, init = {}) => {
      try {
        const r = await fetch(url + path, init);
        const exposed = ["ETag", "Location", "Allow", "Retry-After", "Stream-Next-Offset", "Content-Disposition"];
        seen[name] = { status: r.status, text: await r.text() };
        for (const h of exposed) if (r.headers.has(h)) seen[name][h] = r.headers.get(h);
      } catch {
        seen[name] = "refused by the browser";
      }
    };
    const json = (method, body, headers) => ({
      method,
      body: JSON.stringify(body),
      headers: { "Content-Type": "application/json", ...headers },
    });
    await ask("create", "/api/v1/sessions", json("POST", { id: "s" }));
    await ask("append", "/api/v1/sessions/s/events", json("POST", { type: "acme.said" }, { "If-Match": '"1"' }));
    await ask("conflict", "/api/v1/sessions/s/events", json("POST", { type: "acme.said" }, { "If-Match": '"1"' }));
    await ask("rename", "/api/sessions/s", json("PATCH", { title: "Elsewhere" }));
    await ask("read", "/api/v1/sessions/s/events");
    await ask("token", "/api/v1/sessions/s", { headers: { Authorization: "Bearer x" } });
    await ask("view", "/api/v1/sessions/s/snapshot");
    await ask("export", "/api/v1/sessions/s/export", json("POST", { format: "ndjson" }));
    await ask("unknown session", "/api/v1/sessions/none");
    await ask("unknown path", "/api/v1/nothing");
    await ask("unknown page", "/v1/nothing");
    await ask("wrong method", "/api/v1/agents", { method: "DELETE" });
    await ask("health", "/healthz");
    await ask("put stream", "/v1/stream/x", { method: "PUT", headers: { "Content-Type": "text/plain" } });
    await ask("post stream", "/v1/stream/x", {
      method: "POST",
      body: "hi",
      headers: { "Content-Type": "text/plain", "Producer-Id": "p", "Producer-Epoch": "0", "Producer-Seq": "0" },
    });
    await ask("get stream", "/v1/stream/x?offset=-1");
    for (const path of [
      "/api/v1/sessions/s/stream",
      "/api/v1/sessions/s/events",
      "/v1/stream/sessions/s?offset=-1&live=sse",
    ])
      seen[path] = await new Promise((ok) => {
        const source = new EventSource(url + path);
        const done = (v) => {
          source.close();
          ok(v);
        };
        for (const name of ["message", "data"])
          source.addEventListener(name, (m) => done(m.data.includes("session.created")));
        source.onerror = () => done("refused by the browser");
      });
    await ask("delete", "/api/v1/sessions/s", { method: "DELETE" });
    return seen;
  })();

async function worksFor(allow) {
  await fromElsewhere(allow, async (v, server) => {
    v.expected.push(/the server responded with a status of 40\d|412/);
    const seen = await v.page.evaluate(everything, server.url);
    const statuses = {};
    for (const [name, answer] of Object.entries(seen)) statuses[name] = answer.status ?? answer;
    assert.deepEqual(statuses, {
      create: 201,
      append: 200,
      conflict: 409,
      rename: 200,
      read: 200,
      token: 200,
      view: 200,
      export: 200,
      "unknown session": 404,
      "unknown path": 404,
      "unknown page": 404,
      "wrong method": 405,
      health: 200,
      "put stream": 201,
      "post stream": 200,
      "get stream": 200,
      "/api/v1/sessions/s/stream": true,
      "/api/v1/sessions/s/events": true,
      "/v1/stream/sessions/s?offset=-1&live=sse": true,
      delete: 204,
    });
    assert.equal(seen.create.Location, "/api/v1/sessions/s");
    assert.equal(seen.append.ETag, '"2"');
    assert.equal(seen.conflict.ETag, '"2"');
    assert.equal(seen["wrong method"].Allow, "GET, HEAD");
    assert.match(seen.export["Content-Disposition"], /ndjson/);
    assert.ok(seen["get stream"]["Stream-Next-Offset"]);
  });
}

export const checks = {
  "a page of an allowed origin can use every endpoint": () => worksFor((origin) => origin),
  "with * a page of any origin can use every endpoint": () => worksFor(() => "*"),
  "a page of another origin can do nothing": () =>
    fromElsewhere(
      () => "https://app.example",
      async (v, server) => {
        v.expected.push(/CORS policy|ERR_FAILED|403/);
        const seen = await v.page.evaluate(everything, server.url);
        for (const [name, answer] of Object.entries(seen)) assert.equal(answer, "refused by the browser", name);
        assert.equal((await fetch(`${server.url}/api/v1/sessions/s`)).status, 404);
      },
    ),
};
