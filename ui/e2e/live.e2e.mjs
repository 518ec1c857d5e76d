import assert from "node:assert/strict";
import { Server, turn, until, visitor } from "./lab.mjs";

const chip = (page) => page.getByRole("status", { name: "Connection" });
const conversation = (page) => page.getByRole("region", { name: "Conversation" });

/** A server with one session. It is stopped even if the check fails. */
async function lab(check, ...args) {
  const server = await Server.start(...args);
  try {
    await server.session({ id: "s", title: "A talk" });
    await server.append("s", turn("i1", "first question", ["first ", "answer"]));
    await check(server);
  } finally {
    await server.stop();
  }
}

async function shows(page, text) {
  await conversation(page).getByText(text, { exact: true }).first().waitFor();
}

export const checks = {
  "new events appear live": () =>
    lab(async (server) => {
      const v = await visitor(server);
      await v.page.goto(`${server.url}/s/s`);
      await shows(v.page, "first answer");
      const [ask, run, begin, ...rest] = turn("i2", "second question", ["half an ", "answer"]);
      await server.append("s", [ask, run, begin, rest[0]]);
      await shows(v.page, "half an");
      await server.append("s", rest.slice(1));
      await shows(v.page, "half an answer");
      await v.end();
    }),

  "eight tabs of one browser show what happens, and can send requests": () =>
    lab(async (server) => {
      const v = await visitor(server);
      const pages = [v.page];
      while (pages.length < 8) pages.push(await v.context.newPage());
      for (const page of pages) await page.goto(`${server.url}/s/s`);
      for (const page of pages) await shows(page, "first answer");
      await server.append("s", turn("i2", "second question", "second answer"));
      for (const page of pages) {
        await shows(page, "second answer");
        assert.equal(await page.evaluate(() => fetch("/healthz").then((r) => r.status)), 200);
        assert.match(await chip(page).innerText(), /caught up/i);
      }
      await pages[0].close(); // a further one has its place now
      await server.append("s", turn("i3", "third question", "third answer"));
      for (const page of pages.slice(1)) await shows(page, "third answer");
      await v.end();
    }),

  "after a kill and restart of the server the page continues without lost or duplicate messages": () =>
    lab(async (server) => {
      const v = await visitor(server);
      v.expected.push(/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE/);
      await v.page.goto(`${server.url}/s/s`);
      await shows(v.page, "first answer");
      await server.kill();
      await until(async () => /reconnecting/i.test(await chip(v.page).innerText()), "the chip shows Reconnecting");
      await server.up();
      await server.append("s", turn("i2", "second question", ["second ", "answer"]));
      await shows(v.page, "second answer");
      await until(
        async () => !/reconnecting/i.test(await chip(v.page).innerText()),
        "the chip no longer shows Reconnecting",
      );
      const { messages, at } = await server.snapshot("s");
      const items = await conversation(v.page).innerText();
      for (const m of messages) assert.equal(items.split(m.text).length, 2, `${m.text} is there once:\n${items}`);
      await v.page.getByText(`event ${at} of ${at}`).waitFor();
      await v.end();
    }),

  "a script of the page that cannot be loaded at first is loaded later": () =>
    lab(async (server) => {
      const v = await visitor(server);
      v.expected.push(/ERR_FAILED|dynamically imported module/);
      let refused = 0;
      await v.page.route(/assets\/markdown-.*\.js/, (route) => (refused++ < 2 ? route.abort() : route.continue()));
      await v.page.goto(`${server.url}/s/s`);
      await until(() => refused > 2, "the script is asked for again");
      await conversation(v.page).locator("p", { hasText: "first answer" }).waitFor();
      await v.end();
    }),

  "a closed session is shown as closed, does not reconnect, and offers no changes": () =>
    lab(async (server) => {
      await server.append("s", [...turn("i2", "second question", "second answer"), ...turn("i3", "third", "no")]);
      await server.call("POST", "/sessions/s/rewind", { before_invocation_id: "i3" });
      await server.call("POST", "/sessions/s/close");
      const v = await visitor(server);
      await v.page.goto(`${server.url}/s/s`);
      await shows(v.page, "first answer");
      const seen = [];
      await until(
        async () => {
          seen.push(await chip(v.page).innerText());
          return seen.at(-1) === "Closed";
        },
        "the chip shows Closed",
        () => seen.join(", "),
      );
      await v.page.getByText("This session is closed. It accepts no more events.").waitFor();
      const rewind = v.page.getByRole("button", { name: /rewind to here/i }).last();
      await until(
        async () => /the session is closed/.test(await rewind.getAttribute("title")),
        "the tooltip gives the reason",
      );
      await v.page.getByRole("note").filter({ hasText: "Rewound" }).waitFor();
      assert.equal(await v.page.getByRole("button", { name: "Undo" }).count(), 0);
      await v.page.keyboard.press("m");
      await v.page.getByText("Cannot set a bookmark: the session is closed").first().waitFor();
      assert.ok(!/Reconnecting|Not connected/i.test(seen.join()), seen.join(", "));
      await v.end();
    }),

  "two browsers show the same": () =>
    lab(async (server) => {
      const [a, b] = [await visitor(server), await visitor(server)];
      for (const v of [a, b]) await v.page.goto(`${server.url}/s/s`);
      await shows(b.page, "first answer");
      await a.page
        .getByRole("button", { name: /rewind to here/i })
        .first()
        .waitFor();
      await server.append("s", turn("i2", "second question", "second answer"));
      for (const v of [a, b]) await shows(v.page, "second answer");
      await server.call("POST", "/sessions/s/rewind", { before_invocation_id: "i2" });
      for (const v of [a, b]) {
        await until(
          async () => !(await conversation(v.page).innerText()).includes("second answer"),
          "the reverted turn is hidden",
        );
      }
      // The row of the rewind arrives with its own event, at a different time in each browser.
      for (const v of [a, b])
        await conversation(v.page)
          .getByText(/Rewound to offset/)
          .waitFor();
      await until(
        async () => (await conversation(a.page).innerText()) === (await conversation(b.page).innerText()),
        "both show the same",
      );
      for (const v of [a, b]) await v.end();
    }),

  "a rewind survives a reload, and can be undone": () =>
    lab(async (server) => {
      await server.append("s", turn("i2", "second question", "second answer"));
      const v = await visitor(server);
      await v.page.goto(`${server.url}/s/s`);
      await shows(v.page, "second answer");
      await server.call("POST", "/sessions/s/rewind", { before_invocation_id: "i2" });
      const hidden = async () => !(await conversation(v.page).innerText()).includes("second answer");
      await until(hidden, "the reverted turn is hidden");
      await v.page.reload();
      await shows(v.page, "first answer");
      assert.ok(await hidden());
      assert.deepEqual(
        (await server.snapshot("s")).messages.map((m) => m.text),
        ["first question", "first answer"],
      );
      await server.call("POST", "/sessions/s/undo");
      await shows(v.page, "second answer");
      await v.end();
    }),

  "a link to an offset shows that offset in another browser": () =>
    lab(async (server) => {
      await server.append("s", turn("i2", "second question", "second answer"));
      const v = await visitor(server);
      await v.page.goto(`${server.url}/s/s?at=7`);
      await shows(v.page, "first answer");
      await v.page.getByText(/event 7 of 14/).waitFor();
      assert.ok(!(await conversation(v.page).innerText()).includes("second question"));
      await v.end();
    }),

  "a reload while a message streams loses and duplicates nothing": () =>
    lab(async (server) => {
      await server.call("POST", "/sessions/s/task", { task: "Take your time", agent: "long" });
      const v = await visitor(server);
      await v.page.goto(`${server.url}/s/s`);
      await conversation(v.page).getByText("Take your time").first().waitFor();
      for (let n = 0; n < 3; n++) {
        const before = (await server.call("GET", "/sessions/s")).head;
        await until(async () => (await server.call("GET", "/sessions/s")).head > before + 20, "more events arrive");
        await v.page.reload();
        await conversation(v.page).getByText("Take your time").first().waitFor();
      }
      await server.call("POST", "/sessions/s/cancel");
      await conversation(v.page).getByText("Run cancelled").waitFor();
      const { messages } = await server.snapshot("s");
      const spoken = messages.filter((m) => m.invocation !== "i1" && m.role === "assistant" && m.text);
      assert.ok(spoken.length > 0);
      // Markdown changes spaces and punctuation, so compare only the words in their order.
      const words = (text) => text.match(/[\p{L}\p{N}]+/gu).join(" ");
      // Each message begins with the same words, so a short last one is in the others, too.
      const said = spoken.map((m) => words(m.text));
      const times = (text) => text.split(said.at(-1)).length - 1;
      await until(
        async () => times(words(await conversation(v.page).innerText())) === times(said.join("\n")),
        "the last message appears as often as on the server",
        () => said.at(-1),
      );
    }, "--demo"),
};
