// The page in a real browser, with a session that the real program exported.
//
//     node examples/player/check.mjs --binary bin/tapedeck
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { resolve } from "node:path";
import { chromium } from "playwright-core";
import { withServer } from "../../conformance/harness.mjs";

const binary = resolve(process.argv[process.argv.indexOf("--binary") + 1] ?? "");
const here = (path) => readFileSync(new URL(path, import.meta.url));
const script = here("../../packages/player/dist/tapedeck-player.js");

/** Serves files; their policy allows no inline style and no other host. */
async function serve(files, use) {
  const server = createServer((r, w) => {
    const [type, body] = files[r.url] ?? ["text/plain", undefined];
    const policy = "default-src 'none'; script-src 'self'; connect-src *; img-src 'none'";
    w.writeHead(body === undefined ? 404 : 200, { "Content-Type": type, "Content-Security-Policy": policy }).end(body);
  }).listen(0, "127.0.0.1");
  await new Promise((ok) => server.once("listening", ok));
  try {
    await use(`http://127.0.0.1:${server.address().port}`);
  } finally {
    server.closeAllConnections();
    await new Promise((ok) => server.close(ok));
  }
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
try {
  const page = await browser.newPage();
  const faults = [];
  page.on("pageerror", (e) => faults.push(e.message));
  page.on("console", (m) => m.type() === "error" && !/favicon/.test(m.location().url) && faults.push(m.text()));
  await withServer(binary, ["--allow-origin", "*"], async (tapedeck) => {
    const api = (method, path, body) =>
      fetch(`${tapedeck.url}/api/v1${path}`, {
        method,
        headers: { "Content-Type": "application/json" },
        ...(body ? { body: JSON.stringify(body) } : {}),
      });
    const started = await (
      await api("POST", "/sessions/run", { task: "Say hello", agent: "hello", title: "A greeting" })
    ).json();
    const id = started.session_id;
    const followed = await api("GET", `/sessions/${id}/stream?until=terminal`);
    await followed.text();
    const trip = await (await api("POST", `/sessions/${id}/export`, { format: "json" })).text();
    const { messages } = JSON.parse(trip).snapshot;
    const words = messages
      .findLast((m) => m.role === "assistant")
      .text.trim()
      .split("\n")[0];
    const live = here("index.html").toString().replace('src="trip.json" autoplay', `src="${tapedeck.url}/s/${id}"`);
    const files = {
      "/": ["text/html", here("index.html")],
      "/live": ["text/html", live],
      "/tapedeck-player.js": ["text/javascript", script],
      "/trip.json": ["application/json", trip],
    };
    await serve(files, async (url) => {
      await page.goto(url);
      const player = page.locator("tapedeck-player");
      await player.getByText("A greeting").waitFor();
      await player.getByText(words).first().waitFor({ timeout: 60_000 }); // it has played to here
      await player.getByLabel("Position").fill("1");
      await player.getByText(words).first().waitFor({ state: "detached" });
      console.log("ok    the page plays an exported session, and its bar moves the playhead");

      await page.goto(`${url}/live`);
      await player.getByText(words).first().waitFor();
      await api("POST", `/sessions/${id}/events`, {
        type: "message.added",
        data: { message: { id: "m9", role: "user", content: "<b onclick=alert(1)>And now?</b>" } },
      });
      await player.getByText("<b onclick=alert(1)>And now?</b>").waitFor();
      console.log("ok    the page follows a session of a server at another origin");
      await page.goto("about:blank"); // otherwise it connects again, to a server that has ended
    });
  });
  assert.deepEqual(faults, []);
  console.log("2 passed, 0 failed");
} finally {
  await browser.close();
}
