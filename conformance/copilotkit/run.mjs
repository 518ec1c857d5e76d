// This program opens a page with CopilotKit's React chat in a real browser. The page
// talks to a Tapedeck binary on another origin:
//
//     node run.mjs --binary ../../bin/tapedeck
//
// It needs Chromium (or $CHROMIUM). It prints the counts, and fails if a scenario fails.
import assert from "node:assert/strict"
import { randomUUID } from "node:crypto"
import { createServer } from "node:http"

import { build } from "esbuild"
import { chromium } from "playwright-core"

import { Server } from "../harness.mjs"

const [flag, binary, extra] = process.argv.slice(2)
if (flag !== "--binary" || !binary || extra) {
  console.error("usage: node run.mjs --binary PATH")
  process.exit(2)
}

const words = (n) => Array.from({ length: n }, (_, i) => `word${i}.`).join(" ")
const steps = [{ say: words(60), rate: 20 }, { tool: "search", args: { q: 1 }, result: "42" }, { say: "All is done." }]

const scenarios = {
  async "a refresh during a run loses and doubles nothing"(open) {
    const address = { thread: randomUUID(), agent: "hello", steps: JSON.stringify(steps) }
    const page = await open(address)
    await say(page, "Tell me words")
    await shows(page, "word8.")
    await page.reload()
    await shows(page, "word9.")
    const second = await open(address) // another tab
    await shows(second, "All is done.")
    await shows(page, "All is done.")
    for (const p of [page, second]) await complete(p)
    await page.reload()
    await shows(page, "All is done.")
    await complete(page)
    await say(page, "And again")
    await page.waitForFunction(() => document.body.innerText.split("All is done.").length === 3)
    await page.reload()
    await page.waitForFunction(() => document.body.innerText.split("All is done.").length === 3)
    assert.equal(count(await page.innerText("body"), "And again"), 1)
  },

  async "the stop button stops the run, and the partial text stays"(open, server) {
    const thread = randomUUID()
    const page = await open({ thread, agent: "long" })
    await say(page, "Talk")
    await page.waitForSelector("[data-testid=copilot-assistant-message]")
    await page.click("[data-testid=copilot-send-button]") // it stops while a run is open
    const status = async () => (await (await fetch(`${server.url}/api/v1/sessions/${thread}`)).json()).status
    await until(async () => await status() === "cancelled")
    const before = await page.innerText("[data-testid=copilot-assistant-message]")
    await page.reload()
    await page.waitForSelector("[data-testid=copilot-assistant-message]")
    assert.ok((await page.innerText("[data-testid=copilot-assistant-message]")).startsWith(before.slice(0, 40)))
  },

  async "the server is killed and comes back; the page restores the thread"(open, server, wrong) {
    const page = await open({ thread: randomUUID(), agent: "long" })
    await say(page, "Talk")
    await page.waitForSelector("[data-testid=copilot-assistant-message]")
    const before = await page.innerText("[data-testid=copilot-assistant-message]")
    await server.restart()
    await page.reload()
    wrong.length = 0 // the page does not catch the broken connection
    await page.waitForSelector("[data-testid=copilot-assistant-message]")
    const after = await page.innerText("[data-testid=copilot-assistant-message]")
    assert.ok(after.startsWith(before.slice(0, 40)), `${after} does not begin with ${before}`)
    assert.equal(count(await page.innerText("body"), "Talk"), 1)
  },
}

async function say(page, text) {
  const box = page.locator("textarea").first()
  await box.fill(text)
  await box.press("Enter")
}

const shows = (page, text) => page.waitForFunction((t) => document.body.innerText.includes(t), text)
const count = (text, part) => text.split(part).length - 1

/** The page shows the answer once, with every word of it. */
async function complete(page) {
  const text = await page.innerText("body")
  assert.equal(count(text, "Tell me words"), 1, text)
  assert.equal(count(text, "All is done."), 1, text)
  for (let i = 0; i < 60; i++) assert.equal(count(text, `word${i}.`), 1, `word${i} in ${text}`)
}

async function until(so) {
  for (const end = Date.now() + 120_000; Date.now() < end;) {
    if (await so()) return
    await new Promise((done) => setTimeout(done, 100))
  }
  throw new Error("timed out")
}

const files = await build({
  entryPoints: ["app.jsx"], bundle: true, write: false, outdir: "out", format: "esm", minify: true, jsx: "automatic",
  define: { "process.env.NODE_ENV": '"production"' }, logLevel: "error", loader: { ".woff": "dataurl", ".woff2": "dataurl", ".ttf": "dataurl" },
})
const content = Object.fromEntries(files.outputFiles.map((f) => [f.path.endsWith(".css") ? "/app.css" : "/app.js", f.contents]))
const site = createServer((request, response) => {
  const path = new URL(request.url, "http://x").pathname
  const type = { "/app.js": "text/javascript", "/app.css": "text/css" }[path] ?? "text/html"
  response.setHeader("Content-Type", `${type}; charset=utf-8`)
  response.end(content[path] ?? '<!doctype html><link rel="stylesheet" href="/app.css"><div id="root" style="height:100vh"></div><script type="module" src="/app.js"></script>')
})
await new Promise((done) => site.listen(0, "127.0.0.1", done))
const origin = `http://127.0.0.1:${site.address().port}`

const server = new Server(binary, ["--demo", "--allow-origin", origin])
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-dev-shm-usage"] })
let passed = 0, failed = 0
try {
  await server.start()
  for (const [name, play] of Object.entries(scenarios)) {
    const context = await browser.newContext({ viewport: { width: 1000, height: 800 } })
    await context.route((url) => url.hostname !== "127.0.0.1", (route) => route.abort()) // no telemetry
    const wrong = []
    const open = async (address) => {
      const page = await context.newPage()
      page.on("pageerror", (e) => wrong.push(`uncaught: ${e.stack ?? e}`))
      await page.goto(`${origin}/?${new URLSearchParams({ runtime: `${server.url}/copilotkit`, ...address })}`)
      await page.waitForSelector("textarea")
      return page
    }
    try {
      await play(open, server, wrong)
      assert.deepEqual(wrong, [])
      passed++
    } catch (err) {
      failed++
      console.log(`  FAILED ${name}\n    ${String(err.stack ?? err).slice(0, 3000)}`)
      for (const [i, p] of context.pages().entries()) console.log(`    page ${i}: ${(await p.innerText("body").catch(() => "")).slice(0, 600)}`)
    }
    await context.close()
  }
} finally {
  await browser.close()
  await server.stop()
  site.close()
}
console.log(`CopilotKit's React chat: ${passed} passed, ${failed} failed`)
process.exit(passed > 0 && failed === 0 ? 0 : 1)
