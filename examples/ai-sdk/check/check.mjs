// The example in a real browser, with the real program.
//
//     node examples/ai-sdk/check/check.mjs --binary bin/tapedeck
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { chromium } from "playwright-core";
import { withServer } from "../../../conformance/harness.mjs";
import { serve } from "../server.mjs";

const binary = resolve(process.argv[process.argv.indexOf("--binary") + 1] ?? "");
const file = (path) => readFileSync(new URL(`../${path}`, import.meta.url), "utf8");
const whole = Array.from({ length: 100 }, (_, i) => `word${i + 1} `).join("");
const patient = { timeout: 60_000 };

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
const faults = [];
const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

/** A page in a browser of its own. */
async function visitor(options = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.on("pageerror", (e) => faults.push(e.message));
  return page;
}
const shown = (page) => page.getByLabel("Conversation").locator("li").allTextContents();
const says = (page, text) => page.getByLabel("Conversation").getByText(text, { exact: false }).first().waitFor(patient);
const ready = (page) => page.getByText(/^ready, /).waitFor(patient);

async function send(page, text) {
  await page.getByLabel("Message").fill(text);
  await page.getByText("Send").click();
}

async function routes() {
  await withServer(binary, [], async (server) => {
    process.env.TAPEDECK_URL = server.url;
    const app = await serve(0);
    try {
      const address = `${app.url}/#chat-1`;
      const first = await visitor();
      await first.goto(address);
      await send(first, "Hello");
      await says(first, "word5 ");
      await first.reload(); // in mid-word
      const second = await first.context().newPage();
      await second.goto(address);
      const small = await visitor(phone);
      await small.goto(address);
      for (const page of [first, second, small]) await says(page, "word20 ");
      await server.restart(); // kill -9
      for (const page of [first, second, small]) await says(page, "word100 ");
      for (const page of [first, second, small]) {
        await ready(page);
        assert.deepEqual(await shown(page), ["user: Hello", `assistant: ${whole}`]);
      }
      console.log("ok    a reload in mid-word, a second tab, a phone and a kill of the server: the same text, once");

      await send(second, "Again");
      for (const page of [first, second, small])
        await page.locator("li:nth-child(4)", { hasText: "word5 " }).waitFor(patient);
      await small.getByText("Stop").click();
      for (const page of [first, second, small]) await ready(page);
      const [, , question, partial] = await shown(first);
      assert.equal(question, "user: Again");
      assert.ok(`assistant: ${whole}`.startsWith(partial) && !partial.includes("word100 "), partial);
      for (const page of [second, small]) assert.deepEqual(await shown(page), await shown(first));
      await first.reload();
      await says(first, "Again");
      assert.deepEqual(await shown(first), await shown(small));
      console.log("ok    a message of a second tab appears on a phone, which stops it for all");
    } finally {
      await app.close();
    }
  });
}

/** The README shows what changes in the AI SDK's own example; with the changes it is the file here. */
function readme() {
  const blocks = [...file("README.md").matchAll(/^```diff (\S+)\n([\s\S]*?)^```$/gm)];
  assert.equal(blocks.length, 1);
  for (const [, path, diff] of blocks) {
    const after = diff.split("\n").filter((line) => !line.startsWith("-"));
    assert.equal(after.map((line) => line.slice(1)).join("\n"), file(path), path);
  }
  console.log("ok    the README shows the file that was tested");
}

try {
  readme();
  await routes();
  assert.deepEqual(faults, []);
  console.log("3 passed, 0 failed");
} finally {
  await browser.close();
}
