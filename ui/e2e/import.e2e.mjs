import assert from "node:assert/strict";
import { faults, Server, turn, until, visitor } from "./lab.mjs";

const conversation = (page) => page.getByRole("region", { name: "Conversation" });
const preview = (page) => page.getByRole("region", { name: "Import preview" });
const choose = (page, name, text) =>
  page.getByLabel(/^Choose/).setInputFiles({ name, mimeType: "application/octet-stream", buffer: Buffer.from(text) });

/** An empty server, and its import page. */
async function lab(check) {
  const server = await Server.start();
  try {
    const v = await visitor(server);
    await v.page.goto(server.url);
    await v.page.getByRole("link", { name: "import a file" }).click();
    await v.page.getByRole("heading", { name: "Import" }).waitFor();
    await check(v.page, server, v);
    await v.end();
  } finally {
    await server.stop();
  }
}

async function exported(server, id) {
  const response = await fetch(`${server.url}/api/v1/sessions/${id}/export`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: '{"format":"ndjson"}',
  });
  assert.equal(response.status, 200);
  return response.text();
}

const chat = (n, words = "hello") =>
  `${JSON.stringify({
    messages: [
      { role: "user", content: `${words} ${n}` },
      { role: "assistant", content: "well" },
    ],
  })}\n`;

const claude = [
  { type: "summary", summary: "Listing the files", leafUuid: "x" },
  {
    type: "user",
    uuid: "u1",
    sessionId: "s-1",
    timestamp: "2026-01-05T10:00:00.000Z",
    message: { role: "user", content: "what is here?" },
  },
  { type: "progress", uuid: "p1" },
  {
    type: "assistant",
    uuid: "a1",
    timestamp: "2026-01-05T10:00:05.000Z",
    message: { id: "m1", role: "assistant", content: [{ type: "text", text: "I shall look." }] },
  },
];

export const checks = {
  "a session exported as NDJSON and imported again looks the same": async () => {
    const first = await Server.start();
    try {
      await first.session({ id: "talk", title: "A talk" });
      await first.append("talk", [
        ...turn("i1", "first question", ["first ", "answer"]),
        { type: "plan.updated", data: { entries: [{ content: "Look at it", status: "completed" }] } },
        ...turn("i2", "second question", "second answer"),
        ...turn("i3", "aside", "an answer aside", "side"),
      ]);
      await first.call("POST", "/sessions/talk/rewind", { before_invocation_id: "i2" });
      const file = await exported(first, "talk");
      const v = await visitor(first);
      await v.page.goto(`${first.url}/s/talk`);
      await conversation(v.page).getByText("first answer").waitFor();
      await conversation(v.page).getByText("2/2").waitFor(); // loaded by a separate request
      const shown = await conversation(v.page).innerText();
      await v.end();
      await lab(async (page, server) => {
        await choose(page, "talk.ndjson", file);
        const row = preview(page).getByRole("row", { name: /A talk/ });
        await row.waitFor();
        for (const cell of ["A talk", String(file.trim().split("\n").length - 1), "main, side", "talk"])
          await row.getByRole("cell", { name: cell, exact: true }).waitFor();
        await page.getByRole("button", { name: "Import 1 session" }).click();
        await page.getByRole("link", { name: "talk", exact: true }).click();
        await conversation(page).getByText("first answer").waitFor();
        // Only the newest jump can be undone, and it is the same jump in both sessions.
        await until(
          async () => (await conversation(page).innerText()) === shown,
          "the page shows the same",
          async () => await conversation(page).innerText(),
        );
        assert.equal(await exported(server, "talk"), file);
        assert.deepEqual(await server.snapshot("talk"), await first.snapshot("talk"));
      });
    } finally {
      await first.stop();
    }
  },

  "an import shows a preview and creates no session before it is confirmed": () =>
    lab(async (page, server) => {
      await choose(page, "session.jsonl", claude.map((l) => JSON.stringify(l)).join("\n"));
      await preview(page).getByText("read as claude-code").waitFor();
      await preview(page).getByRole("cell", { name: "Listing the files" }).waitFor();
      await preview(page)
        .getByRole("cell", { name: /^5 Jan 2026/ })
        .waitFor();
      await page.getByText(/^Line 3: /).waitFor();
      assert.deepEqual((await server.call("GET", "/sessions")).sessions, []);
      await page.getByRole("button", { name: "Import 1 session" }).click();
      await page.getByText(/^1 session with \d+ events imported$/).waitFor();
      assert.equal((await server.call("GET", "/sessions")).sessions.length, 1);
      await page.getByRole("link", { name: /^ses_/ }).click();
      await conversation(page).getByText("I shall look.").waitFor();
    }),

  "the format is detected from the file, and can be chosen": () =>
    lab(async (page, _server, v) => {
      v.expected.push(/status of 400/);
      await choose(page, "chats.jsonl", chat(1) + chat(2));
      await preview(page).getByText("2 sessions").waitFor();
      await page.getByLabel("Format").selectOption("claude-code");
      await page.getByText("The input is not in the format claude-code; it seems to be openai-messages").waitFor();
      await page.getByText("Name the format openai-messages, or auto").waitFor();
      assert.equal(await preview(page).count(), 0);
      await page.getByLabel("Format").selectOption("openai-messages");
      await preview(page).getByText("read as openai-messages").waitFor();
      await page.getByRole("button", { name: "Cancel" }).click();
      assert.equal(await preview(page).count(), 0);
    }),

  "a dropped file is accepted, and a drop elsewhere does not replace the page": () =>
    lab(async (page) => {
      const drop = (selector) =>
        page.evaluate(
          ([at, text]) => {
            const data = new DataTransfer();
            data.items.add(new File([text], "dropped.jsonl"));
            const e = new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
            document.querySelector(at).dispatchEvent(e);
            return e.defaultPrevented;
          },
          [selector, chat(1, "dropped")],
        );
      assert.equal(await drop("header"), true);
      assert.equal(await preview(page).count(), 0);
      assert.equal(await drop("main h1"), true);
      await preview(page).getByRole("cell", { name: "dropped 1" }).waitFor();
    }),

  "an import error names its line, even in a large file": () =>
    lab(async (page, server, v) => {
      v.expected.push(/status of 400/);
      const many = Array.from({ length: 3000 }, (_, n) => chat(n, "x".repeat(5000))).join("");
      for (const [name, text, words] of [
        ["broken.jsonl", `${chat(1)}{"messages":[`, "Line 2 of the input is not JSON"],
        ["large.jsonl", `${chat(1)}oh\n${many}`, "Line 2 of the input is not JSON"],
        ["picture.png", "\u0089PNG\r\n", "Line 1 of the input is not JSON"],
        [
          "cut.ndjson",
          '{"tapedeck":1,"session":{"id":"a","head":3}}\n',
          "The input ends after 0 events of session a, which has 3",
        ],
        ["empty", "", "There is no conversation in the input"],
      ]) {
        await choose(page, name, text);
        await page.getByText(name, { exact: true }).waitFor();
        await page.getByRole("alert").getByText(words).waitFor();
        await page.getByText("Nothing was imported.").waitFor();
        assert.equal(await page.getByRole("button", { name: /^Import \d/ }).count(), 0);
      }
      assert.deepEqual((await server.call("GET", "/sessions")).sessions, []);
    }),

  "a large import shows its progress, and imports nothing when stopped": () =>
    lab(async (page, server, v) => {
      const large = Array.from({ length: 2000 }, (_, n) => chat(n, "x".repeat(2000))).join("");
      await choose(page, "large.jsonl", large);
      await preview(page).getByText("… and 1900 more").waitFor();
      const wire = await v.context.newCDPSession(page);
      await wire.send("Network.enable");
      await wire.send("Network.emulateNetworkConditions", {
        offline: false,
        latency: 0,
        downloadThroughput: -1,
        uploadThroughput: 400_000,
      });
      await page.getByRole("button", { name: "Import 2,000 sessions" }).click();
      await page.getByText(/^Importing: [1-9]\d?% sent$/).waitFor();
      await page.getByRole("button", { name: "Stop" }).click();
      await page.getByText("Drop a file here, or").waitFor();
      await until(async () => (await server.call("GET", "/sessions")).sessions.length === 0, "no session is left");
    }),

  "axe finds no fault in an import preview, light or dark": async () => {
    const server = await Server.start();
    for (const colorScheme of ["light", "dark"]) {
      const v = await visitor(server, { colorScheme, bypassCSP: true });
      await v.page.goto(`${server.url}/import`);
      await choose(v.page, "session.jsonl", claude.map((l) => JSON.stringify(l)).join("\n"));
      await preview(v.page).waitFor();
      assert.deepEqual(await faults(v.page), []);
      await v.end();
    }
    await server.stop();
  },

  "an imported title is only text": () =>
    lab(async (page) => {
      const title = "<img src=https://evil.example/x onerror='window.pwned=1'>";
      const head = { tapedeck: 1, session: { id: "a", title, head: 1 } };
      const event = {
        offset: 0,
        type: "session.created",
        channel: "session",
        timestamp: "2026-01-05T10:00:00.000Z",
        data: { title },
      };
      await choose(page, `${title}.ndjson`, `${JSON.stringify(head)}\n${JSON.stringify(event)}\n`);
      await preview(page).getByRole("cell", { name: title }).waitFor();
      assert.equal(await page.locator("#root img").count(), 0);
      assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
    }),
};
