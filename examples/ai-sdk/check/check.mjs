// The example in a real browser, with the real program.
//
//     node examples/ai-sdk/check/check.mjs --binary bin/tapedeck
import assert from "node:assert/strict";
import { resolve } from "node:path";
import { chromium } from "playwright-core";
import { withServer } from "../../../conformance/harness.mjs";
import { serve } from "../server.mjs";

const binary = resolve(process.argv[process.argv.indexOf("--binary") + 1] ?? "");
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

const asks = (page) => page.getByText("May the agent use weather?").waitFor(patient);
const more = Array.from({ length: 20 }, (_, i) => `more${i + 1} `).join("");

/** Waits until pages show the same list. */
async function agree(pages, want) {
  for (const page of pages) {
    const settled = (n) =>
      document.querySelectorAll("li").length === n && document.querySelector("p")?.textContent.startsWith("ready, ");
    await page.waitForFunction(settled, want.length, patient).catch(() => undefined);
    // Its place and its status say why it does not agree.
    const got = {
      page: pages.indexOf(page),
      status: await page.getByRole("status").textContent(),
      list: await shown(page),
    };
    assert.deepEqual(got, { page: got.page, status: got.status.replace(/^.*,/, "ready,"), list: want });
  }
}

async function approvals() {
  await withServer(binary, [], async (server) => {
    process.env.TAPEDECK_URL = server.url;
    const app = await serve(0, "/check/approval.ts");
    try {
      for (const [button, state] of [
        ["Yes", "output-available"],
        ["No", "output-denied"],
      ]) {
        const address = `${app.url}/#chat-${button}`;
        const pages = await Promise.all([visitor(), visitor(phone), visitor()]);
        const [first, second, third] = pages;
        for (const page of pages) await page.goto(address);
        await send(first, "Weather?");
        for (const page of pages) await asks(page);
        await first.reload();
        await third.reload();
        for (const page of [first, third]) await asks(page);
        await second.getByText(button, { exact: true }).click();
        await says(second, "more3 ");
        await third.reload(); // while the run speaks that has the answer
        if (button === "Yes") await server.restart(); // kill -9
        for (const page of pages) await says(page, "more20 ");
        const want = ["user: Weather?", `assistant: Let me look.  [tool-weather ${state}] ${more}`];
        await agree(pages, want);
        const fresh = await visitor();
        await fresh.goto(address);
        await agree([fresh], want);
        await send(first, "And now?");
        for (const page of [...pages, fresh]) await asks(page);
        await first.getByText(button, { exact: true }).click();
        await agree([...pages, fresh], [...want, "user: And now?", want[1]]);
        console.log(`ok    ${button} to the question of a route: one message, on all pages, live and loaded`);
      }
    } finally {
      await app.close();
    }
  });
}

/** A server that is away, and a chat that is busy. */
async function refusals() {
  await withServer(binary, [], async (server) => {
    process.env.TAPEDECK_URL = server.url;
    const app = await serve(0);
    try {
      const address = `${app.url}/#chat-1`;
      const [first, second] = await Promise.all([visitor(), visitor()]);
      const missed = [];
      first.on("response", (r) => r.status() === 404 && missed.push(r.url()));
      for (const page of [first, second]) await page.goto(address);
      await first.getByText("ready, idle").waitFor(patient);
      assert.deepEqual(missed, []);
      console.log("ok    a chat that has not begun asks for nothing that is not there");

      await Promise.all([send(first, "From one"), send(second, "From two")]);
      const refused = (page) =>
        page
          .getByRole("alert")
          .waitFor(patient)
          .then(() => page);
      const loser = await Promise.race([refused(first), refused(second)]);
      const [lost, won] = loser === first ? ["From one", "From two"] : ["From two", "From one"];
      assert.equal(await loser.getByLabel("Message").inputValue(), lost);
      assert.match(await loser.getByRole("alert").textContent(), /^Not sent: chat chat-1 is busy/);
      await agree([first, second], [`user: ${won}`, `assistant: ${whole}`]);
      await loser.reload();
      await agree([loser], [`user: ${won}`, `assistant: ${whole}`]);
      console.log("ok    of two messages at once one is refused, and its page has the text again");

      server.child.kill("SIGKILL");
      await server.ended;
      await send(first, "Later");
      const late = await visitor();
      await late.goto(address);
      await late.getByText("Trying again").waitFor(patient);
      await server.start(new URL(server.url).host);
      for (const page of [first, late]) await says(page, "word3 ");
      await agree([first, second, late], [`user: ${won}`, `assistant: ${whole}`, "user: Later", `assistant: ${whole}`]);
      console.log("ok    a page that is loaded while the server is away waits for it, and so does a message");
    } finally {
      await app.close();
    }
  });
}

/** Seven tabs of one browser, over HTTP/1.1: more than it has connections. */
async function tabs() {
  await withServer(binary, [], async (server) => {
    process.env.TAPEDECK_URL = server.url;
    const app = await serve(0);
    try {
      const first = await visitor();
      const pages = [first];
      while (pages.length < 7) pages.push(await first.context().newPage());
      for (const [n, page] of pages.entries()) await page.goto(`${app.url}/#chat-${n < 5 ? "shared" : n}`);
      const [shared, others] = [pages.slice(0, 5), pages.slice(5)];
      await send(shared[0], "Hello");
      await agree(shared, ["user: Hello", `assistant: ${whole}`]);
      await Promise.all([shared[4], ...others].map((page) => send(page, "At once")));
      for (const page of [shared[0], ...others]) await page.getByText("word5 ").last().waitFor(patient);
      await shared[3].getByText("Stop").click();
      await agree(others, ["user: At once", `assistant: ${whole}`]);
      const settled = await shown(shared[4]);
      assert.equal(settled.length, 4);
      await agree(shared, settled);
      console.log("ok    seven tabs of one browser over HTTP/1.1: each is written to, stopped and kept up to date");
    } finally {
      await app.close();
    }
  });
}

const only = process.argv[process.argv.indexOf("--only") + 1];
try {
  for (const part of [routes, approvals, refusals, tabs])
    if (!process.argv.includes("--only") || part.name === only) await part();
  assert.deepEqual(faults, []);
  console.log("all passed");
} finally {
  await browser.close();
}
