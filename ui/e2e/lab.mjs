// A real server and a real browser. Every check also fails on an error in the console
// of the page, and on a request to any other server.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

export const binary = process.env.TAPEDECK ?? new URL("../../bin/tapedeck", import.meta.url).pathname;

const servers = new Set(); // running servers

/** A server with its own data folder. It can be killed and started again. */
export class Server {
  static async start(...args) {
    const s = new Server();
    s.data = mkdtempSync(join(tmpdir(), "tapedeck-e2e-"));
    s.port = 0; // any free one, which it keeps when it is started again
    s.args = args;
    servers.add(s);
    await s.up();
    return s;
  }

  async up() {
    const args = ["serve", "--data", this.data, "--listen", `127.0.0.1:${this.port}`, ...this.args];
    this.output = "";
    this.process = spawn(binary, args, { stdio: ["ignore", "pipe", "pipe"] });
    for (const out of [this.process.stdout, this.process.stderr]) out.on("data", (b) => (this.output += b));
    this.exited = new Promise((ok) => this.process.once("exit", ok));
    const ready = async () => {
      this.url ??= / at (http:\S+)/.exec(this.output)?.[1];
      return this.url && (await fetch(`${this.url}/readyz`).catch(() => undefined))?.ok;
    };
    await until(ready, "the server is ready", () => this.output);
    this.port = new URL(this.url).port;
  }

  async kill() {
    this.process.kill("SIGKILL");
    await this.exited;
  }

  async stop() {
    servers.delete(this);
    this.process.kill("SIGTERM");
    await this.exited;
    rmSync(this.data, { recursive: true, force: true });
  }

  async call(method, path, body, type = "application/json") {
    const response = await fetch(`${this.url}/api/v1${path}`, {
      method,
      headers: { "Content-Type": type },
      body: body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.status === 204 ? undefined : response.json();
  }

  session(body) {
    return this.call("POST", "/sessions", body);
  }

  append(id, events) {
    return this.call("POST", `/sessions/${id}/events`, events);
  }

  snapshot(id) {
    return this.call("GET", `/sessions/${id}/snapshot?limit=10000`);
  }
}

/** Waits until a condition holds. */
export async function until(so, what, explain = () => "", ms = 60_000) {
  for (const end = Date.now() + ms; ; ) {
    if (await so()) return;
    if (Date.now() > end) throw new Error(`timed out waiting for: ${what} ${await explain()}`);
    await new Promise((ok) => setTimeout(ok, 50));
  }
}

let browser;

export async function openBrowser(args = []) {
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-dev-shm-usage", ...args],
  });
}

/** Cleans up after a check: closes pages, and stops servers and removes their folders. */
export async function clear() {
  for (const context of browser.contexts()) await context.close();
  for (const s of servers) await s.stop();
}

export async function closeBrowser() {
  await browser?.close();
}

/** A fresh browser context. `wrong` collects errors and forbidden requests. */
export async function visitor(server, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const wrong = [];
  const expected = []; // patterns of console errors that a check causes
  context.setDefaultTimeout(60_000); // only a hanging check waits so long; test machines can be slow
  const page = await context.newPage();
  page.on("pageerror", (e) => wrong.push(`uncaught: ${e.stack ?? e}`));
  page.on("console", (m) => {
    if (m.type() === "error" && !expected.some((p) => p.test(m.text()))) wrong.push(`console: ${m.text()}`);
  });
  page.on("dialog", (d) => {
    wrong.push(`dialog: ${d.message()}`);
    void d.dismiss();
  });
  context.on("request", (r) => {
    const url = new URL(r.url());
    if (url.origin !== server.url && url.protocol !== "data:" && url.protocol !== "blob:")
      wrong.push(`foreign request: ${r.url()}`);
  });
  const end = async () => {
    await context.close();
    if (wrong.length > 0) throw new Error(wrong.join("\n"));
  };
  return { page, context, wrong, expected, end };
}

/** Injects a script, a style, an image and a request, and checks that the page's policy blocks them. */
export async function attacksAreBlocked({ page, expected, wrong }) {
  expected.push(/Content Security Policy/, /violates the following/);
  const stopped = await page.evaluate(async () => {
    const seen = [];
    document.addEventListener("securitypolicyviolation", (e) => seen.push(e.effectiveDirective));
    const script = document.createElement("script");
    script.textContent = "window.pwned = 12";
    document.body.append(script);
    const div = document.createElement("div");
    div.innerHTML = "<img src=https://evil.example/x.png onerror='window.pwned=13'><p style='color:red'>";
    document.body.append(div);
    await fetch("https://evil.example/").catch(() => undefined);
    for (let n = 0; n < 1200 && seen.length < 4; n++) await new Promise((ok) => setTimeout(ok, 50));
    return seen;
  });
  for (const directive of ["script-src-elem", "style-src-attr", "img-src", "connect-src"])
    assert.ok(stopped.includes(directive), `${directive}: ${stopped}`);
  assert.equal(await page.evaluate(() => globalThis.pwned), undefined, "a script has run");
  wrong.splice(0, wrong.length, ...wrong.filter((w) => !w.startsWith("foreign request"))); // attempted, but blocked
}

let axe;

/** The faults that axe finds on a page. Its visitor needs bypassCSP. */
export async function faults(page) {
  axe ??= readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  return violations.map((x) => `${x.id}: ${x.nodes[0].html}`);
}

/** The events of one turn, as an external writer appends them. */
export function turn(invocation, ask, answer, thread) {
  const event = (type, data, more = {}) => ({ type, invocation, ...(thread ? { thread } : {}), ...more, data });
  const id = `a_${invocation}`;
  return [
    event("message.added", { message: { id: `u_${invocation}`, role: "user", content: ask } }, { actor: "user:ada" }),
    event("RUN_STARTED", { threadId: thread ?? "main", runId: invocation }),
    event("TEXT_MESSAGE_START", { messageId: id, role: "assistant" }),
    ...[answer].flat().map((delta) => event("TEXT_MESSAGE_CONTENT", { messageId: id, delta })),
    event("TEXT_MESSAGE_END", { messageId: id }),
    event("RUN_FINISHED", { threadId: thread ?? "main", runId: invocation }),
  ];
}

/** The lines of a session export, by its age and duration in milliseconds. */
export function recorded(id, agent, ago, took, failed = false) {
  const began = Date.now() - ago;
  const event = (offset, ms, type, channel, data, more = {}) =>
    JSON.stringify({ offset, type, channel, timestamp: new Date(began + ms).toISOString(), ...more, data });
  const of = { invocation: "i" };
  return [
    JSON.stringify({ tapedeck: 1, session: { id, kind: "session", title: `Task ${id}`, agent, head: 3 } }),
    event(0, 0, "session.created", "session", { title: `Task ${id}`, agent }),
    event(1, 0, "RUN_STARTED", "agentState", { threadId: "main", runId: "i" }, of),
    failed
      ? event(2, took, "RUN_ERROR", "agentState", { message: "no", code: "agent" }, of)
      : event(2, took, "RUN_FINISHED", "agentState", { threadId: "main", runId: "i" }, of),
  ];
}

/** A server, filled by `fill`, and a page of it. The server is stopped even if the check fails. */
export async function onPage(path, fill, check, { args = [], ...options } = {}) {
  const server = await Server.start(...args);
  try {
    await fill(server);
    const v = await visitor(server, options);
    await v.page.goto(server.url + path);
    await check(v.page, server, v);
    await v.end();
  } finally {
    await server.stop();
  }
}

export const conversation = (page) => page.getByRole("region", { name: "Conversation" });

/** The playhead and the number of events that the page shows. */
export async function position(page) {
  const text = await page.getByText(/^event [\d,]+ of [\d,]+$/).innerText();
  const [at, head] = text.match(/[\d,]+/g).map((n) => Number(n.replaceAll(",", "")));
  return { at, head };
}

/** Waits until the playhead is at an offset. */
export async function isAt(page, offset) {
  let last;
  await until(
    async () => {
      last = await position(page);
      return last.at === offset;
    },
    `the playhead is at ${offset}`,
    () => `but at ${last?.at}`,
  );
}

/** A session export with given times: `events` are [milliseconds, type, data, members]. */
export function timed(id, events, status = "complete") {
  const began = Date.UTC(2026, 0, 5, 12);
  const at = (ms) => new Date(began + ms).toISOString();
  const lines = events.map(([ms, type, data, more], offset) =>
    JSON.stringify({ offset, type, channel: channelOf(type), timestamp: at(ms), ...more, data }),
  );
  const session = { id, kind: "session", created_at: at(0), updated_at: at(events.at(-1)[0]), status };
  return [JSON.stringify({ tapedeck: 1, session: { ...session, head: lines.length } }), ...lines, ""].join("\n");
}

function channelOf(type) {
  if (type.startsWith("session.")) return "session";
  if (type.startsWith("TOOL_CALL")) return "toolCalls";
  return type.startsWith("RUN_") ? "agentState" : "chunks";
}

/** Imports such an export. */
export const importExport = (server, text) =>
  server.call("POST", "/import?format=ndjson", text, "application/octet-stream");
