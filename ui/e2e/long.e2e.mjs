import assert from "node:assert/strict";
import { Server, turn, until, visitor } from "./lab.mjs";
import { recording } from "./recording.mjs";

const conversation = (page) => page.getByRole("region", { name: "Conversation" });
const rows = (page) => page.locator("[aria-label=Conversation] > ol > li");
const elements = (page) => page.evaluate(() => document.querySelectorAll("*").length);

async function lab(check) {
  const server = await Server.start();
  try {
    const v = await visitor(server);
    await check(v.page, server);
    await v.end();
  } finally {
    await server.stop();
  }
}

async function at(page, offset) {
  const words = `event ${offset.toLocaleString("en")} of`;
  await until(
    async () => (await page.getByText(/^event [\d,]+ of/).innerText()).startsWith(words),
    `the page says: ${words}`,
    () => "",
    30_000,
  );
  await loadedThere(page);
}

/** Waits until the conversation at the playhead is loaded. It may be empty at the start. */
async function loadedThere(page) {
  const busy = page.locator("[aria-label=Conversation][aria-busy]");
  await until(async () => (await busy.count()) === 0, "it is loaded");
}

/** Counts the requests of the page, their bytes, and those for a part of the session, from now on. */
function asked(page) {
  const sum = { requests: 0, bytes: 0, parts: 0 };
  page.on("response", (r) => {
    if (!r.url().includes("/api/") || r.url().includes("/stream")) return;
    sum.requests++;
    if (/\/(snapshot|events)\?/.test(r.url())) sum.parts++;
    r.body().then(
      (b) => {
        sum.bytes += b.length;
      },
      () => undefined, // the request was cancelled
    );
  });
  return sum;
}

export const checks = {
  "a session of 50,000 events shows its first row at once and has fewer than 500 elements": () =>
    lab(async (page, server) => {
      const made = recording("long", 50_001);
      await server.call("POST", "/import?format=ndjson", made.text, "application/octet-stream");
      const loaded = asked(page);
      await page.goto(`${server.url}/s/long`);
      await conversation(page).getByRole("listitem").first().waitFor();
      // The panels ask for more at that moment. The row needs one snapshot and the events after it.
      assert.ok(loaded.parts <= 2, `${loaded.parts} parts of the session were loaded before the first row`);
      await at(page, made.head);
      await conversation(page)
        .getByText(`answer ${made.turns - 1}`, { exact: true })
        .waitFor();
      await page.getByRole("slider").waitFor();
      assert.ok(loaded.requests <= 12, `${loaded.requests} requests to open it`);
      assert.ok(loaded.bytes < 2 ** 20, `${loaded.bytes} bytes to open it`);

      for (const [key, offset] of [
        ["Home", 1],
        ["End", made.head],
      ]) {
        await page.keyboard.press(key);
        await at(page, offset);
      }
      for (const tenth of [3, 7, 5]) {
        const before = loaded.requests;
        const words = await page.getByRole("slider").getAttribute("aria-valuetext");
        const bar = await page.getByRole("slider").boundingBox();
        await page.mouse.click(bar.x + (bar.width * tenth) / 10, bar.y + bar.height / 2);
        await until(
          async () => (await page.getByRole("slider").getAttribute("aria-valuetext")) !== words,
          "the playhead has moved",
        );
        await loadedThere(page);
        await until(async () => (await rows(page).count()) > 3, "there are rows");
        assert.ok(loaded.requests - before <= 6, `${loaded.requests - before} requests to seek`);
        assert.ok((await rows(page).count()) < 40, "only the visible rows are there");
        assert.ok((await elements(page)) < 500, `${await elements(page)} elements`);
      }
    }),

  "after a burst of events no message is missing and the page is at the end": () =>
    lab(async (page, server) => {
      await server.session({ id: "burst", title: "A burst" });
      await server.append("burst", turn("i0", "before it", "an answer"));
      await page.goto(`${server.url}/s/burst`);
      await conversation(page).getByText("an answer").waitFor();
      const events = Array.from({ length: 20 }, (_, i) =>
        turn(
          `i${i + 1}`,
          `question ${i + 1}.`,
          Array.from({ length: 295 }, (_, n) => `t${i}n${n} `),
        ),
      ).flat();
      for (let i = 0; i < events.length; i += 200) {
        const due = new Promise((ok) => setTimeout(ok, 100)); // 2,000 events a second
        await server.append("burst", events.slice(i, i + 200));
        await due;
      }
      const fold = await server.snapshot("burst");
      await at(page, fold.at);
      await conversation(page).getByText("t19n294", { exact: false }).waitFor();
      const end = await conversation(page).evaluate((el) => el.scrollHeight - el.scrollTop - el.clientHeight);
      assert.ok(end < 80, `${end} pixels from the end`);

      const seen = new Map();
      const look = () => page.evaluate(() => document.querySelector("[aria-label=Conversation] > ol").innerText);
      await until(
        async () => {
          const shown = words(await look());
          for (const m of fold.messages) if (shown.includes(words(m.text))) seen.set(m.id, true);
          await conversation(page).evaluate((el) => el.scrollBy(0, -el.clientHeight / 2));
          return seen.size === fold.messages.length;
        },
        "every message is on the page as on the server",
        () => `${seen.size} of ${fold.messages.length}`,
        30_000,
      );
    }),
};

const words = (text) => text.trim().replace(/\s+/g, " ");
