// The main ways through the screen in Debian's Firefox, over WebDriver BiDi, because
// Playwright drives only a Firefox of its own: node e2e/firefox.mjs [part of a name].
// Each way is gone at desktop and phone width, light and dark, without an error in the console.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import puppeteer from "puppeteer-core";
import { Server, turn, until } from "./lab.mjs";

const triage = readFileSync(new URL("../../cmd/tapedeck/demo_triage.bpmn", import.meta.url), "utf8");
const only = process.argv[2] ?? "";
const sizes = { desktop: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };
const themes = { light: 1, dark: 0 };

/** Firefox asks for nothing outside of this machine: a proxy that does not exist gets the rest. */
const prefs = (theme) => ({
  "layout.css.prefers-color-scheme.content-override": themes[theme],
  "network.proxy.type": 1,
  "network.proxy.http": "127.0.0.1",
  "network.proxy.http_port": 9,
  "network.proxy.ssl": "127.0.0.1",
  "network.proxy.ssl_port": 9,
  "network.proxy.no_proxies_on": "127.0.0.1",
  "network.captive-portal-service.enabled": false,
  "network.connectivity-service.enabled": false,
});

const ask = {
  type: "permission.requested",
  invocation: "i",
  data: {
    id: "p",
    message: "May I go on?",
    options: [
      { id: "yes", name: "Allow once", kind: "allow_once" },
      { id: "no", name: "Reject", kind: "reject_once" },
    ],
    action: { tool: "Bash", command: "make all" },
  },
};

/** The sessions of one look at the page. */
async function fill(server, look) {
  await server.session({ id: `talk-${look}`, title: `A talk ${look}`, agent: "hello" });
  await server.append(`talk-${look}`, [
    ...turn("i1", "first question", "first answer"),
    ...turn("i2", "second question", "second answer"),
  ]);
  await server.session({ id: `asks-${look}`, title: `It asks ${look}`, agent: "hello" });
  await server.append(`asks-${look}`, [
    { type: "RUN_STARTED", invocation: "i", data: { threadId: "main", runId: "i" } },
    ask,
  ]);
}

/** A page as people use it: what is there has a role and a name, or a text. */
class Visit {
  constructor(page, server, look) {
    Object.assign(this, { page, server, look });
  }

  open = (path) => this.page.goto(this.server.url + path);
  text = (text) => this.page.waitForSelector(`::-p-text(${text})`, { visible: true, timeout: 30_000 });
  named = (role, name) => this.page.waitForSelector(`::-p-aria([name="${name}"][role="${role}"])`, { timeout: 30_000 });
  click = async (role, name) => (await this.named(role, name)).click();
  key = (key) => this.page.keyboard.press(key);
  has = (text) => this.page.evaluate((t) => document.body.innerText.includes(t), text);
  isGone = (text) => until(async () => !(await this.has(text)), `"${text}" is not shown`);
  path = () => new URL(this.page.url()).pathname;
  opened = (away) => until(async () => this.path() !== away && this.path().startsWith("/s/"), `${away} is left`);
}

const ways = {
  "the list shows the sessions, and its search finds one": async (v) => {
    await v.open("/");
    await v.text(`A talk ${v.look}`);
    await v.open(`/?q=${encodeURIComponent(`asks ${v.look}`)}`);
    await v.text(`It asks ${v.look}`);
    await v.isGone(`A talk ${v.look}`);
  },

  "a session is started, and its agent answers": async (v) => {
    await v.open("/");
    await v.text(`A talk ${v.look}`);
    await v.key("n");
    await (await v.named("textbox", "First message")).type(`Say hello to ${v.look}`);
    await v.page.$$eval("dialog label", (all) => all.find((l) => l.innerText.startsWith("hello")).click());
    await v.click("button", "Start");
    await v.opened("/");
    await v.text("Run complete");
  },

  "new text appears live": async (v) => {
    const id = `talk-${v.look}`;
    await v.open(`/s/${id}`);
    await v.text("second answer");
    await v.server.append(id, turn("i3", "third question", "third answer"));
    await v.text("third answer");
  },

  "a question is answered in the inbox": async (v) => {
    await v.open("/inbox");
    await v.text("make all");
    await v.click("button", "Allow once");
    await v.text("Answered: Allow once");
    const { events } = await v.server.call("GET", `/sessions/asks-${v.look}/events?type=permission.answered`);
    assert.equal(events[0].data.option, "yes");
    await v.server.append(`asks-${v.look}`, [
      { type: "RUN_FINISHED", invocation: "i", data: { threadId: "main", runId: "i" } },
    ]);
  },

  "a session is sought with a key and with the pointer, and plays": async (v) => {
    await v.open(`/s/talk-${v.look}`);
    await v.text("second answer");
    await v.key("Home");
    await v.isGone("second answer");
    await v.key(" ");
    await v.text("second answer");
    const bar = await (await v.named("slider", "Position in the session")).boundingBox();
    await v.page.mouse.click(bar.x + bar.width * 0.3, bar.y + bar.height / 2);
    await v.isGone("second answer");
    await v.key("L");
    await v.text("second answer");
  },

  "a session is forked, and compared with its parent": async (v) => {
    const from = `/s/talk-${v.look}`;
    await v.open(from);
    await (await v.text("first answer")).click();
    await v.key("b");
    await v.text("Fork here?");
    await v.key("Enter");
    await v.opened(from);
    await v.server.append(v.path().slice(3), turn("j", "another question", "another answer"));
    await v.text("another answer");
    await v.click("link", "Compare with it");
    await v.text("another question");
    await v.text("First difference");
    await v.click("button", "Play both");
    await v.named("slider", "Position of both sides");
  },

  "a session is shared, and searched": async (v) => {
    await v.open(`/s/talk-${v.look}`);
    await v.text("second answer");
    await v.click("button", "Share");
    await v.named("dialog", "Share");
    await v.key("Escape");
    await v.page.waitForSelector("dialog[open]", { hidden: true });
    await v.key("/");
    await v.page.keyboard.type("second");
    await v.text("2 of 2"); // the one at the playhead
  },

  "a workflow is drawn, and a task opens": async (v) => {
    await v.open("/s/w?view=workflow");
    await v.page.waitForSelector(".workflow-diagram [data-element-id=Decide]", { timeout: 30_000 });
    await v.open("/s/w?view=workflow&task=Decide");
    await v.page.waitForSelector('aside[aria-label^="Task "]', { visible: true });
  },
};

const server = await Server.start("--demo");
const failed = [];
const flaky = [];
let count = 0;
try {
  await server.session({ id: "w", title: "Triage", agent: "workflow" });
  await server.call("POST", "/workflows/run", { bpmn: triage, variables: { cve: "CVE-1" }, session: "w" });
  for (const theme of Object.keys(themes)) await inTheme(theme);
} finally {
  await server.stop();
}
console.log(`${count} checks in Firefox, ${failed.length} failed, ${flaky.length} only at a later attempt`);
for (const name of flaky) console.log(`      ${name}`);
process.exit(failed.length > 0 || count === 0 ? 1 : 0);

async function inTheme(theme) {
  const browser = await puppeteer.launch({
    browser: "firefox",
    executablePath: process.env.FIREFOX ?? "/usr/bin/firefox-esr",
    extraPrefsFirefox: prefs(theme),
  });
  try {
    for (const size of Object.keys(sizes)) {
      const look = `${size}-${theme}`;
      await fill(server, look);
      for (const [name, way] of Object.entries(ways))
        if (name.includes(only)) await tries(browser, size, look, name, way);
    }
  } finally {
    await browser.close();
  }
}

/** A browser on a busy machine is sometimes late, so a way that fails is gone twice more. The summary lists it. */
async function tries(browser, size, look, name, way) {
  count++;
  if (await goes(browser, size, look, name, way)) return;
  for (let more = 0; more < 2; more++)
    if (await goes(browser, size, look, name, way)) return void flaky.push(`${look}: ${name}`);
  failed.push(`${look}: ${name}`);
}

/** Goes one way; it fails on an error in the console, too, and if a page is wider than the window. */
async function goes(browser, size, look, name, way) {
  const began = performance.now();
  const page = await browser.newPage();
  try {
    const wrong = [];
    page.on("pageerror", (e) => wrong.push(`uncaught: ${e.stack ?? e}`));
    page.on("console", (m) => m.type() === "error" && wrong.push(`console: ${m.text()}`));
    await page.setViewport(sizes[size]);
    await way(new Visit(page, server, look));
    const { clientWidth, scrollWidth, theme } = await page.evaluate(() => {
      const { clientWidth, scrollWidth, dataset } = document.documentElement;
      return { clientWidth, scrollWidth, theme: dataset.theme };
    });
    assert.ok(scrollWidth <= clientWidth, `the page is ${scrollWidth} pixels wide, the window ${clientWidth}`);
    assert.equal(theme, look.split("-")[1]);
    assert.deepEqual(wrong, []);
    console.log(`ok    ${look}: ${name} (${Math.round(performance.now() - began)} ms)`);
    return true;
  } catch (err) {
    console.log(`FAIL  ${look}: ${name}\n      ${String(err.stack ?? err).replaceAll("\n", "\n      ")}`);
    return false;
  } finally {
    await page.close();
  }
}
