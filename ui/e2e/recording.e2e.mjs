import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { attacks } from "./hostile.e2e.mjs";
import { attacksAreBlocked, conversation, faults, isAt, position, Server, turn, until, visitor } from "./lab.mjs";

/** Imports a session with an event at a fixed interval. */
async function recorded(server, id, events, everyMs = 500) {
  const start = Date.parse("2026-01-05T12:00:00.000Z");
  const all = [{ type: "session.created", data: { title: "A talk" } }, ...events];
  const lines = all.map((e, offset) =>
    JSON.stringify({
      offset,
      ...e,
      channel: channelOf(e.type),
      timestamp: new Date(start + offset * everyMs).toISOString(),
    }),
  );
  const head = JSON.stringify({ tapedeck: 1, session: { id, kind: "session", title: "A talk", head: all.length } });
  await server.call("POST", "/import?format=ndjson", [head, ...lines].join("\n"), "application/x-ndjson");
  return all.length;
}

function channelOf(type) {
  if (type.startsWith("session.")) return "session";
  if (type.startsWith("TOOL")) return "toolCalls";
  return /^(message\.|TEXT)/.test(type) ? "chunks" : "agentState";
}

/** Exports a recording, and opens the file without a network. The page must make no other request. */
async function fromFile(server, id, more, check, options) {
  const folder = mkdtempSync(join(tmpdir(), "tapedeck-recording-"));
  try {
    const response = await fetch(`${server.url}/api/v1/sessions/${id}/export`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ format: "html", ...more }),
    });
    assert.equal(response.status, 200);
    const file = join(folder, "recording.html");
    writeFileSync(file, Buffer.from(await response.arrayBuffer()));
    await opened(file, check, options);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function opened(file, check, options) {
  const v = await visitor({ url: "null" }, { offline: true, ...options }); // "null" is the origin of a file
  const { href } = pathToFileURL(file);
  const asked = new Set();
  v.context.on("request", (r) => asked.add(r.url()));
  v.alone = () => assert.deepEqual([...asked], [href]);
  await v.page.goto(href);
  await check(v.page, v);
  for (const url of v.tried ?? []) asked.delete(url);
  v.alone();
  await v.end();
}

async function lab(check) {
  const server = await Server.start();
  try {
    await check(server);
  } finally {
    await server.stop();
  }
}

const plan = { type: "plan.updated", data: { entries: [{ content: "Look at it", status: "completed" }] } };
const state = { type: "STATE_SNAPSHOT", invocation: "i1", data: { snapshot: { mood: "sunny" } } };
const talk = [
  ...turn("i1", "first question", ["first ", "answer"]),
  plan,
  ...turn("i2", "second question", "second answer"),
  ...turn("i3", "a question aside", "an answer aside", "side"),
];

export const checks = {
  "a recording opens with its poster and theme, and plays from its start": () =>
    lab(async (server) => {
      await recorded(server, "s", talk, 20);
      const look = { poster: 8, start: 2, theme: "dark" };
      await fromFile(server, "s", look, async (page) => {
        await isAt(page, 8);
        assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
        const play = page.getByRole("button", { name: "Play the recording: A talk" });
        assert.ok((await conversation(page).innerText()).includes("first question"));
        await play.click();
        await play.waitFor({ state: "detached" });
        await conversation(page).getByText("second answer").waitFor();
        await page.goto(`${page.url().split("#")[0]}#at=3`);
        await page.reload();
        await isAt(page, 3);
        assert.equal(await play.count(), 0, "an address with a moment has no poster");
      });
      const v = await visitor(server);
      await v.page.goto(`${server.url}/s/s?at=9`);
      await v.page.getByRole("button", { name: "Share" }).click();
      const share = v.page.getByRole("dialog", { name: "Share" });
      assert.match(await share.getByLabel("Embed code", { exact: true }).inputValue(), /poster="9" at="0"/);
      assert.match(
        await share.getByLabel("Code of the frame", { exact: true }).inputValue(),
        /<iframe src="s\.html#poster=9"/,
      );
      await share.getByRole("button", { name: "Export a recording…" }).click();
      const dialog = v.page.getByRole("dialog", { name: "Export" });
      await dialog.getByLabel("shows first").selectOption("here");
      await dialog.getByLabel("has the theme").selectOption("light");
      const [request] = await Promise.all([
        v.page.waitForRequest((r) => r.url().endsWith("/export")),
        v.page.waitForEvent("download"),
        dialog.getByRole("button", { name: "Save file" }).click(),
      ]);
      const { poster, start, theme } = request.postDataJSON();
      assert.deepEqual({ poster, start, theme }, { poster: 9, start: 0, theme: "light" });
      await v.page.getByText("Saved as s.html", { exact: false }).waitFor();
      await v.page.getByText("The rules found nothing to redact.", { exact: false }).waitFor();
      await v.end();
    }),

  "a recording is saved from the page, opens from a file, makes no requests, and plays": () =>
    lab(async (server) => {
      const head = await recorded(server, "s", talk);
      const v = await visitor(server);
      await v.page.goto(`${server.url}/s/s`);
      await v.page.getByRole("button", { name: "Export" }).click();
      const dialog = v.page.getByRole("dialog", { name: "Export" });
      await dialog.getByLabel("Format").selectOption("html");
      const [download] = await Promise.all([
        v.page.waitForEvent("download"),
        dialog.getByRole("button", { name: "Save file" }).click(),
      ]);
      assert.equal(download.suggestedFilename(), "s.html");
      const folder = mkdtempSync(join(tmpdir(), "tapedeck-recording-"));
      const file = join(folder, "s.html");
      await download.saveAs(file);
      await v.end();
      await server.kill(); // no server is left
      await opened(file, async (page) => {
        await page.getByRole("heading", { name: "A talk" }).waitFor();
        await page.getByText(`events 0 to ${head - 1}, exported`).waitFor();
        await conversation(page).getByText("an answer aside").waitFor();
        await isAt(page, head);
        assert.equal(await page.getByLabel("Message to the agent").count(), 0, "a recording has no composer");

        await page.keyboard.press("Home");
        await isAt(page, 1);
        await until(
          async () => !(await page.locator("main").innerText()).includes("first question"),
          "the conversation is empty",
        );
        await page.keyboard.press("u"); // to the next user message
        await conversation(page).getByText("first question").waitFor();
        assert.ok(!(await conversation(page).innerText()).includes("answer"));
        await page.getByLabel("Speed").selectOption("16");
        await page.keyboard.press(" ");
        await conversation(page).getByText("second answer").waitFor();
        await isAt(page, head);
        await page.getByRole("button", { name: "Play", exact: true }).waitFor();
        await page.getByRole("slider").click({ position: { x: 300, y: 20 } });
        await until(async () => (await position(page)).at !== head, "the bar seeks");
      });
      rmSync(folder, { recursive: true, force: true });
    }),

  "a recording has the panels, the threads and the events": () =>
    lab(async (server) => {
      const head = await recorded(server, "s", [
        ...talk,
        { type: "RUN_STARTED", invocation: "i1b", data: { threadId: "main", runId: "i1b" } },
        { ...state, invocation: "i1b" },
        { type: "RUN_FINISHED", invocation: "i1b", data: { threadId: "main", runId: "i1b" } },
      ]);
      await fromFile(server, "s", {}, async (page) => {
        await page.getByRole("tab", { name: /^Plan/ }).click();
        await page.getByRole("tabpanel").getByText("Look at it").waitFor();
        await page.getByRole("tab", { name: "State" }).click();
        await page.getByRole("tabpanel").getByText("sunny").waitFor();
        await page.getByRole("tab", { name: "Summary" }).click();
        await page.getByRole("tabpanel").getByText("Events").waitFor();
        await page.getByRole("tab", { name: /^Threads/ }).click();
        await page.getByRole("button", { name: /^side/ }).click();
        await until(
          async () => !(await conversation(page).innerText()).includes("second answer"),
          "only the thread is shown",
        );
        await page.getByRole("button", { name: "Show all threads" }).click();
        await page.getByRole("tab", { name: /^Events/ }).click();
        await page.getByRole("button", { name: /^0 .*session.created/ }).waitFor();
        await page.getByRole("button", { name: "session", exact: true }).click();
        await page.getByText("1 matching event").waitFor();
        await page.getByRole("button", { name: "Clear" }).click();
        await page.getByText(`${head} events`).waitFor();
        await page.getByRole("searchbox", { name: "Text" }).fill("second answer");
        await page.getByText("1 matching event").waitFor();
        await page.keyboard.press("Escape");
        await page.keyboard.press("?");
        const keys = page.getByRole("dialog", { name: "Keyboard shortcuts" });
        await keys.getByText("play, pause").waitFor();
        assert.equal(await keys.getByText("rewind to the selected item").count(), 0);
      });
    }),

  "a recording is searched: messages, tool results, and reverted events": () =>
    lab(async (server) => {
      const call = (type, data) => ({ type, invocation: "i4", data: { toolCallId: "c", ...data } });
      await recorded(server, "s", [
        ...talk,
        { type: "RUN_STARTED", invocation: "i4", data: { threadId: "main", runId: "i4" } },
        call("TOOL_CALL_START", { toolCallName: "Read" }),
        call("TOOL_CALL_ARGS", { delta: '{"path":"heron.txt"}' }),
        call("TOOL_CALL_END"),
        call("TOOL_CALL_RESULT", { messageId: "o", content: "a grey heron" }),
        { type: "RUN_FINISHED", invocation: "i4", data: { threadId: "main", runId: "i4" } },
      ]);
      await server.call("POST", "/sessions/s/rewind", { before_invocation_id: "i4" });
      await fromFile(server, "s", {}, async (page) => {
        await page.getByText(/The log keeps them/).waitFor();
        await page.keyboard.press("Control+f");
        const bar = page.getByRole("search", { name: "Find in the session" });
        const field = bar.getByRole("searchbox", { name: "Find" });
        const count = (text) => bar.getByText(text, { exact: true }).waitFor();
        await field.fill("quest");
        await count("3 of 3");
        await page.keyboard.press("Enter");
        await count("1 of 3");
        const marked = () => page.evaluate(() => [...CSS.highlights.get("found-here")].map((r) => r.toString()).join());
        await until(async () => (await marked()) === "quest", "it is highlighted");
        await field.fill("grey heron");
        await count("1 of 1");
        await conversation(page).getByText("a grey heron").waitFor(); // as of the time before the rewind
        await field.fill("nobody said that");
        await count("No results");
        await page.keyboard.press("Escape");
        await until(async () => (await bar.count()) === 0, "it is closed");
      });
    }),

  "axe finds no fault in a recording, light or dark": () =>
    lab(async (server) => {
      await recorded(server, "s", talk);
      for (const colorScheme of ["light", "dark"])
        await fromFile(
          server,
          "s",
          { redact: { presets: ["secrets"] } },
          async (page) => {
            await conversation(page).getByText("an answer aside").waitFor();
            assert.deepEqual(await faults(page), []);
          },
          { colorScheme, bypassCSP: true },
        );
    }),

  "on a narrow screen the panel of a recording opens over the conversation": () =>
    lab(async (server) => {
      await recorded(server, "s", talk);
      await fromFile(
        server,
        "s",
        {},
        async (page) => {
          await conversation(page).getByText("an answer aside").waitFor();
          assert.equal(await page.getByRole("tabpanel").count(), 0);
          await page.getByRole("button", { name: "Panel" }).click();
          await page.getByRole("tab", { name: /^Plan/ }).click();
          await page.getByRole("tabpanel").getByText("Look at it").waitFor();
          await page.keyboard.press("p");
          await until(async () => (await page.getByRole("tabpanel").count()) === 0, "the panel is closed");
          const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
          assert.equal(wide, false, "the page does not scroll sideways");
        },
        { viewport: { width: 420, height: 760 } },
      );
    }),

  "a recording contains only the exported range, without redacted text": () =>
    lab(async (server) => {
      await recorded(
        server,
        "s",
        turn("i1", "my key is AKIAIOSFODNN7EXAMPLE and hunter2", ["the pass", "word is hun", "ter2"]),
      );
      const more = { at: 6, redact: { presets: ["secrets"], patterns: ["hunter2"] } };
      await fromFile(server, "s", more, async (page) => {
        await conversation(page).getByText("my key is [redacted] and [redacted]").waitFor();
        await page.getByText("Redacted", { exact: true }).waitFor();
        await isAt(page, 6);
        assert.doesNotMatch(await page.content(), /AKIAIOSFODNN7EXAMPLE|hunter2/);
      });
      await fromFile(server, "s", {}, async (page) => {
        await conversation(page).getByText("word is hunter2").waitFor();
        assert.equal(await page.getByText("Redacted", { exact: true }).count(), 0);
      });
    }),

  "a recording of active events has no reverted ones": () =>
    lab(async (server) => {
      await recorded(server, "s", talk);
      await server.call("POST", "/sessions/s/rewind", { before_invocation_id: "i2" });
      await fromFile(server, "s", {}, async (page) => {
        await page.getByText(/The log keeps them/).waitFor();
        assert.equal(await page.getByRole("button", { name: "Undo" }).count(), 0);
        await page.keyboard.press("5");
        await conversation(page).getByText("second question").waitFor();
      });
      await fromFile(server, "s", { view: "effective" }, async (page) => {
        await conversation(page).getByText("first answer").waitFor();
        await page.keyboard.press("5");
        assert.ok(!(await page.locator("main").innerText()).includes("second"));
      });
    }),

  "a hostile recording runs nothing and fetches nothing": () =>
    lab(async (server) => {
      await recorded(
        server,
        "s",
        attacks.flatMap((text, i) => turn(`i${i}`, text, `${text}\n\n</script><!--<script>`)),
      );
      await server.call("PATCH", "/sessions/s", { title: "</title><script>window.pwned=9</script>" });
      await fromFile(server, "s", {}, async (page, v) => {
        await conversation(page).getByText("<script>").first().waitFor();
        await page.getByRole("tab", { name: /^Events/ }).click();
        await page
          .getByRole("button", { name: /TEXT_MESSAGE_CONTENT/ })
          .last()
          .click();
        assert.equal(
          await page.locator("iframe, object, embed, base, form[action], #root style, #root link, img").count(),
          0,
        );
        assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
        v.alone();
        v.tried = ["https://evil.example/x.png", "https://evil.example/"];
        await attacksAreBlocked(v);
      });
    }),

  "a recording is never shown on the server's own origin, and a truncated one reports it": () =>
    lab(async (server) => {
      await recorded(server, "s", talk);
      const response = await fetch(`${server.url}/api/v1/sessions/s/export`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: '{"format":"html"}',
      });
      assert.match(response.headers.get("content-disposition"), /^attachment; filename=s\.html/);
      assert.match(response.headers.get("content-security-policy"), /^sandbox;/);
      const whole = await response.text();
      const folder = mkdtempSync(join(tmpdir(), "tapedeck-recording-"));
      const file = join(folder, "cut.html");
      // Some mail programs and proxies cut off the end of a file. Here the script is kept.
      writeFileSync(file, whole.replace(/<script type="application\/vnd.tapedeck.about">[^<]*<\/script>/, ""));
      await opened(file, (page) => page.getByText("The file is incomplete").waitFor());
      assert.ok(readFileSync(file).length > 0);
      rmSync(folder, { recursive: true, force: true });
    }),
};
