// The chat of examples/ai-sdk in a real browser, at another origin than the server, with tokens
// of one session and with the packages that are installed in a folder. run.mjs calls it.
//
//     node test/packages/browser.mjs --binary bin/tapedeck --consumer FOLDER
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { build } from "vite";
import { Server } from "../../conformance/harness.mjs";

const given = (name) => resolve(process.argv[process.argv.indexOf(name) + 1] ?? "");
const [binary, consumer] = [given("--binary"), given("--consumer")];
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const wordsTo = (n) => Array.from({ length: n }, (_, i) => `word${i + 1} `).join("");
const patient = { timeout: 60_000 };
const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

/** The page as one script. */
async function bundle() {
  const root = join(consumer, "page");
  cpSync(here("page"), root, { recursive: true });
  cpSync(here("../../examples/ai-sdk/chat.tsx"), join(root, "chat.tsx"));
  const [out] = [
    await build({ root, configFile: false, logLevel: "error", build: { write: false, target: "es2022" } }),
  ];
  return new Map(out.output.map((o) => [`/${o.fileName}`, o.code ?? o.source]));
}

/** Serves HTTP on the loopback. */
async function listen(handle) {
  const server = createServer(handle);
  await new Promise((ok) => server.listen(0, "127.0.0.1", ok));
  const close = () => {
    server.closeAllConnections();
    return new Promise((ok) => server.close(ok));
  };
  return { url: `http://127.0.0.1:${server.address().port}`, close };
}

/** A model that asks for a tool if it is told to, says fifty words, waits for goOn, and says the rest. */
async function startModel() {
  let open;
  const model = {
    /** The next answers wait at the fiftieth word. */
    hold() {
      model.held = new Promise((ok) => {
        open = ok;
      });
    },
    goOn: () => open(),
  };
  model.hold();
  const { url, close } = await listen(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const { messages } = JSON.parse(Buffer.concat(parts).toString());
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    const send = (delta, finish_reason = null) =>
      response.write(
        `data: ${JSON.stringify({ id: "r", model: "m", choices: [{ index: 0, delta, finish_reason }] })}\n\n`,
      );
    const asked = messages.findLast((m) => m.role === "user").content;
    if (asked.includes("a file") && messages.at(-1).role !== "tool") {
      const call = { name: "write_file", arguments: '{"path":"a.txt","content":"hi"}' };
      send({ role: "assistant", content: "Let me write. " });
      send({ tool_calls: [{ index: 0, id: `call_${messages.length}`, type: "function", function: call }] });
      send({}, "tool_calls");
    } else {
      send({ role: "assistant", content: wordsTo(50) });
      await model.held;
      send({ content: wordsTo(100).slice(wordsTo(50).length) });
      send({}, "stop");
    }
    response.end("data: [DONE]\n\n");
  });
  return Object.assign(model, { url, close });
}

const files = await bundle();
const backend = { token: "" };
const site = await listen((request, response) => {
  const { pathname } = new URL(request.url, "http://site");
  const found = pathname === "/token" ? backend.token : files.get(pathname === "/" ? "/index.html" : pathname);
  const type = pathname.endsWith(".js") ? "text/javascript" : pathname === "/token" ? "text/plain" : "text/html";
  response.writeHead(found === undefined ? 404 : 200, { "Content-Type": type, "Cache-Control": "no-store" }).end(found);
});
const model = await startModel();
const server = new Server(binary);
const [config, auth] = ["tapedeck.toml", "auth.toml"].map((name) => join(server.work, name));
writeFileSync(config, `[[agent]]\nname = "writer"\nkind = "llm"\nurl = "${model.url}/v1"\nmodel = "m"\n`);
const admin = execFileSync(binary, ["token", "create", "--auth", auth, "--subject", "root", "--role", "admin"], {
  encoding: "utf8",
  stdio: ["ignore", "pipe", "ignore"],
}).trim();
server.flags.push("--config", config, "--auth", auth, "--allow-origin", site.url);

/** A request of the backend of the page. */
async function api(method, path, body) {
  const headers = { Authorization: `Bearer ${admin}`, "Content-Type": "application/json" };
  const answer = await fetch(`${server.url}/api/v1${path}`, {
    method,
    headers,
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${answer.ok ? "" : await answer.text()}`);
  return answer.status === 204 ? undefined : answer.json();
}

/** Makes a token of a session, which the page gets from now on. */
async function tokenOf(id, role = "user") {
  const made = await api("POST", `/sessions/${id}/tokens`, { role, subject: "ada" });
  backend.token = made.token;
  return made.id;
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
const faults = [];

/** A page in a browser of its own that has opened a chat. */
async function visitor(id, options = {}) {
  const page = await (await browser.newContext(options)).newPage();
  page.on("pageerror", (e) => faults.push(e.message));
  await page.goto(`${site.url}/?${new URLSearchParams({ api: `${server.url}/aisdk/writer`, id })}`);
  return page;
}
const shown = (page) => page.getByLabel("Conversation").locator("li").allTextContents();
const says = (page, text) => page.getByLabel("Conversation").getByText(text).last().waitFor(patient);
const status = (page, text) => page.getByRole("status").getByText(text).waitFor(patient);
const question = (page) => page.getByText("May the agent use write_file?");

async function send(page, text) {
  await page.getByLabel("Message").fill(text);
  await page.getByText("Send", { exact: true }).click();
}

async function begin(id) {
  model.hold();
  await api("POST", "/sessions", { id, owner: "ada" });
  return tokenOf(id);
}

const wrote = (state) => ` [tool-write_file ${state}] `;
const scenarios = {
  async "an approval over a reload and on a phone: the same text everywhere, once"() {
    await begin("approved");
    const first = await visitor("approved");
    await send(first, "Write a file");
    await question(first).waitFor(patient);
    const small = await visitor("approved", phone);
    await question(small).waitFor(patient);
    await first.reload(); // in the middle of the approval
    await question(first).waitFor(patient);
    await first.getByText("Yes", { exact: true }).click();
    for (const page of [first, small]) await says(page, "word50 ");
    await first.reload(); // in mid-word
    await says(first, "word50 ");
    model.goOn();
    for (const page of [first, small]) await says(page, "word100 ");
    const late = await visitor("approved");
    const whole = `assistant: Let me write. ${wrote("output-available")}${wordsTo(100)}`;
    for (const page of [first, small, late]) {
      await status(page, "ready, caught-up");
      assert.deepEqual(await shown(page), ["user: Write a file", whole]);
    }
  },

  async "a phone refuses what the first page asks"() {
    await begin("refused");
    model.goOn();
    const first = await visitor("refused");
    const small = await visitor("refused", phone);
    await send(first, "Write a file");
    await question(small).waitFor(patient);
    await small.getByText("No", { exact: true }).tap();
    for (const page of [first, small]) await says(page, "word100 ");
    await question(first).waitFor({ state: "detached", ...patient });
    for (const page of [first, small]) await status(page, "ready, caught-up");
    assert.deepEqual(await shown(first), await shown(small));
    assert.ok((await shown(small))[1].startsWith(`assistant: Let me write. ${wrote("output-denied")}word1 `));
  },

  async "a token that ends in mid-stream is renewed: nothing is missing, nothing is there twice"() {
    const old = await begin("renewed");
    const page = await visitor("renewed");
    await send(page, "Talk");
    await says(page, "word50 ");
    await tokenOf("renewed");
    const again = page.waitForRequest((r) => r.url().includes("/stream?message="), patient);
    await api("DELETE", `/sessions/renewed/tokens/${old}`);
    assert.equal((await again).headers().authorization, `Bearer ${backend.token}`);
    model.goOn();
    await says(page, "word100 ");
    await status(page, "ready, caught-up");
    assert.deepEqual(await shown(page), ["user: Talk", `assistant: ${wordsTo(100)}`]);
  },

  async "a token that ends in mid-stream and is not renewed is an error in a sentence; a reload has the rest"() {
    const old = await begin("ended");
    const page = await visitor("ended");
    await send(page, "Talk");
    await says(page, "word50 ");
    await api("DELETE", `/sessions/ended/tokens/${old}`);
    await status(page, /token.*, failed/);
    assert.deepEqual(await shown(page), ["user: Talk", `assistant: ${wordsTo(50)}`]);
    model.goOn();
    await tokenOf("ended");
    await page.reload();
    await says(page, "word100 ");
    await status(page, "ready, caught-up");
    assert.deepEqual(await shown(page), ["user: Talk", `assistant: ${wordsTo(100)}`]);
  },

  async "a token of a reader shows the chat and may not speak"() {
    await begin("read");
    model.goOn();
    const page = await visitor("read");
    await send(page, "Talk");
    await says(page, "word100 ");
    await tokenOf("read", "reader");
    const reader = await visitor("read", phone);
    await says(reader, "word100 ");
    assert.deepEqual(await shown(reader), ["user: Talk", `assistant: ${wordsTo(100)}`]);
    await send(reader, "And me?");
    await status(reader, /this token may read session read, and not change it/);
    await api("GET", "/sessions/read/messages").then(({ messages }) => assert.equal(messages.length, 2));
  },
};

let failed = 0;
try {
  await server.start();
  for (const [name, scenario] of Object.entries(scenarios)) {
    try {
      await scenario();
      console.log(`ok    ${name}`);
    } catch (error) {
      failed++;
      console.log(`FAILED ${name}\n${error.stack}`);
      for (const c of browser.contexts()) for (const p of c.pages()) console.log(await p.locator("body").innerText());
    }
    for (const context of browser.contexts()) await context.close();
  }
  assert.deepEqual(faults, []);
  assert.equal(failed, 0, `${failed} failed`);
} finally {
  await browser.close();
  await server.stop();
  await site.close();
  await model.close();
}
