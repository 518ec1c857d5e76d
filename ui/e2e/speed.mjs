// Measures the screen with long sessions: node e2e/speed.mjs [events…]. It prints
// the table of docs/screen.md and has no limits, because machines differ.
import { rolldown } from "rolldown";
import { closeBrowser, openBrowser, Server, turn, visitor } from "./lab.mjs";
import { recording } from "./recording.mjs";

const sizes = process.argv.slice(2).map(Number);
if (sizes.length === 0) sizes.push(20_000, 200_000);

await openBrowser(["--enable-precise-memory-info", "--js-flags=--expose-gc"]);
const columns = [];
for (const size of sizes) {
  const server = await Server.start();
  try {
    columns.push(await measure(server, size));
  } finally {
    await server.stop();
  }
}
await closeBrowser();
print(columns);

async function measure(server, size) {
  const made = recording("big", size);
  const out = new Map([["", `${made.head.toLocaleString("en")} events`]]);
  const ms = (name, value) => out.set(name, `${value.toFixed(0)} ms`);
  await server.call("POST", "/import?format=ndjson", made.text, "application/octet-stream");
  const v = await visitor(server);
  const { page } = v;
  const loaded = counted(page);

  const began = performance.now();
  await page.goto(`${server.url}/s/big`);
  await page.getByRole("region", { name: "Conversation" }).getByRole("listitem").first().waitFor();
  ms("first row", performance.now() - began);
  await at(page, made.head);
  await quiet(page);
  out.set("requests and bytes until then", loaded.text());
  out.set("heap, opened", await heap(page));

  await inPage(page);
  const far = spread(await page.evaluate(() => window.measure.clicks(60)));
  out.set("seek by click: median, 90%, most", far);
  out.set("heap, after them", await heap(page));
  const near = spread(await page.evaluate(() => window.measure.keys("ArrowLeft", 20)));
  out.set("seek back by 5 s (←)", near);
  const steps = spread(await page.evaluate(() => window.measure.keys(".", 20)));
  out.set("step (.)", steps);
  const end = spread(await page.evaluate(() => window.measure.keys(["Home", "End"], 20)));
  out.set("Home, End", end);
  out.set("elements", String(await page.evaluate(() => document.querySelectorAll("*").length)));

  for (const speed of [16, 64]) {
    await page.evaluate(() => window.measure.keys("3", 1));
    if (!(await setSpeed(page, speed))) continue;
    out.set(`played at ${speed}×: events a second`, await played(page));
    out.set(
      `frames at ${speed}×: median, 95%, most`,
      spread(await page.evaluate(() => window.measure.frames(300)), 0.95, 1),
    );
    await page.keyboard.press("Space");
  }
  out.set("heap, after playing", await heap(page));
  await burst(server, page, out);
  await v.end();
  out.set("folded in a page: events a second, median", await folded(server, made.text));
  return out;
}

/** The rate at which the fold of @tapedeck/client alone folds parsed events in a page. */
async function folded(server, text) {
  const input = new URL("../../packages/client/src/fold/index.ts", import.meta.url).pathname;
  const bundle = await rolldown({ input });
  const { output } = await bundle.generate({ format: "iife", name: "fold" });
  const v = await visitor(server, { bypassCSP: true });
  await v.page.goto(`${server.url}/`);
  await v.page.evaluate(`${output[0].code};globalThis.fold = fold`);
  const rates = await v.page.evaluate((text) => {
    const [, ...events] = text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    return Array.from({ length: 7 }, () => {
      const conversation = new globalThis.fold.Conversation();
      const began = performance.now();
      for (const e of events) conversation.apply(e);
      return (1000 * events.length) / (performance.now() - began);
    });
  }, text);
  await v.end();
  return Math.round(rates.sort((a, b) => a - b)[3]).toLocaleString("en");
}

/** Follows a session that gets 2,000 events a second for five seconds, while pressing keys. */
async function burst(server, page, out) {
  await server.session({ id: "live", title: "A burst" });
  await server.append("live", turn("i", "question", "answer"));
  await page.goto(`${server.url}/s/live`);
  await page.getByText("event 7 of 7").waitFor();
  await inPage(page);
  const frames = page.evaluate(() => window.measure.frames(300));
  const behind = [];
  const pressed = page.evaluate(() => window.measure.presses());
  let head = 0;
  const end = performance.now() + 5000;
  for (let i = 0; performance.now() < end; i++) {
    const due = new Promise((ok) => setTimeout(ok, 100));
    const pieces = Array.from({ length: 195 }, (_, n) => `word${n} `);
    ({ head } = await server.append("live", turn(`i${i}`, `question ${i}`, pieces)));
    if (i % 3 === 0) {
      await page.keyboard.press("j");
      behind.push(head - (await page.evaluate(() => window.measure.position())));
    }
    await due;
  }
  out.set("live, 2,000 events a second: frames", spread(await frames, 0.95, 1));
  await page.getByText(`event ${head.toLocaleString("en")} of`).waitFor();
  const presses = await page.evaluate(() => window.measure.stop());
  await pressed;
  out.set(
    "a key until it is handled",
    spread(
      presses.map((p) => p.handled),
      0.9,
      1,
    ),
  );
  out.set("until that is painted", spread(presses.map((p) => p.painted)));
  out.set("events behind: median, 90%, most", spread(behind).replace(" ms", ""));
}

/** Sets the speed; false if the page does not offer it. */
async function setSpeed(page, speed) {
  const select = page.getByLabel("Speed");
  if ((await select.locator(`option[value="${speed}"]`).count()) === 0) return false;
  await select.selectOption(String(speed));
  return true;
}

/** Starts playback, and returns the number of events shown per second. */
async function played(page) {
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("Space");
  await page.waitForTimeout(500);
  const read = () => page.evaluate(() => [window.measure.position(), performance.now()]);
  const [from, began] = await read();
  await page.waitForTimeout(4000);
  const [to, ended] = await read();
  return (((to - from) / (ended - began)) * 1000).toFixed(0);
}

/** Adds helpers to the page that measure from an input to the painted frame. */
async function inPage(page) {
  await page.evaluate(() => {
    const slider = () => document.querySelector("[role=slider]");
    const position = () => Number(/event ([\d,]+)/.exec(slider().ariaValueText)?.[1].replaceAll(",", ""));
    const conversation = () => document.querySelector("section[aria-label=Conversation]");
    const busy = () => conversation()?.getAttribute("aria-busy") === "true";
    // Done when the playhead has moved, loading has finished, and a frame was painted.
    const drawn = (act) =>
      new Promise((ok, no) => {
        setTimeout(() => no(new Error(`not drawn: still at ${position()}, busy ${busy()}`)), 5000);
        const before = slider().ariaValueText;
        const began = performance.now();
        const seen = new MutationObserver(() => {
          if (slider().ariaValueText === before || busy()) return;
          seen.disconnect();
          requestAnimationFrame(() => {
            const c = new MessageChannel();
            c.port1.onmessage = () => ok(performance.now() - began);
            c.port2.postMessage(0);
          });
        });
        seen.observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
        act();
      });
    const pause = () => new Promise((ok) => setTimeout(ok, 300 + Math.random() * 50));
    const pointer = (x) => {
      const box = slider().getBoundingClientRect();
      const init = {
        bubbles: true,
        clientX: box.x + box.width * x,
        clientY: box.y + box.height / 2,
        button: 0,
        pointerId: 1,
        isPrimary: true,
      };
      slider().dispatchEvent(new PointerEvent("pointerdown", { ...init, buttons: 1 }));
      slider().dispatchEvent(new PointerEvent("pointerup", init));
    };
    const press = (key) =>
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key, code: key, bubbles: true, cancelable: true }));
    window.measure = {
      position,
      drawn,
      clicks: async (n) => {
        const out = [];
        for (let i = 0; i < n; i++) {
          out.push(await drawn(() => pointer((((i * 37) % 100) + 0.5 + i / n / 3) / 101)));
          await pause();
        }
        return out;
      },
      keys: async (keys, n) => {
        const out = [];
        for (let i = 0; i < n; i++) {
          out.push(await drawn(() => press([keys].flat()[i % [keys].flat().length])));
          await pause();
        }
        return out;
      },
      presses: () =>
        new Promise((ok) => {
          const out = [];
          const on = (e) => {
            const handled = performance.now() - e.timeStamp;
            requestAnimationFrame(() => {
              const c = new MessageChannel();
              c.port1.onmessage = () => out.push({ handled, painted: performance.now() - e.timeStamp });
              c.port2.postMessage(0);
            });
          };
          document.addEventListener("keydown", on);
          window.measure.stop = () => {
            document.removeEventListener("keydown", on);
            ok();
            return out;
          };
        }),
      frames: (n) =>
        new Promise((ok) => {
          const out = [];
          let last = performance.now();
          const frame = (now) => {
            out.push(now - last);
            last = now;
            if (out.length < n) requestAnimationFrame(frame);
            else ok(out.slice(1));
          };
          requestAnimationFrame(frame);
        }),
    };
  });
}

async function at(page, offset) {
  await page.getByText(new RegExp(`^event ${offset.toLocaleString("en")} of`)).waitFor();
}

/** Waits until no request but streams, which have no end, has begun or ended for half a second. */
async function quiet(page) {
  let last = performance.now();
  const note = (r) => {
    if (!r.url().includes("/stream")) last = performance.now();
  };
  for (const event of ["request", "requestfinished", "requestfailed"]) page.on(event, note);
  while (performance.now() - last < 500) await page.waitForTimeout(100);
  for (const event of ["request", "requestfinished", "requestfailed"]) page.off(event, note);
}

/** Counts the API requests of the page and their bytes. */
function counted(page) {
  let n = 0;
  let bytes = 0;
  page.on("response", (r) => {
    if (!r.url().includes("/api/")) return;
    n++;
    if (!r.url().includes("/stream"))
      r.body().then(
        (b) => (bytes += b.length),
        () => undefined,
      );
  });
  return { text: () => `${n}, ${(bytes / 2 ** 20).toFixed(1)} MB` };
}

async function heap(page) {
  const used = await page.evaluate(async () => {
    for (let i = 0; i < 3; i++) globalThis.gc?.();
    return performance.memory.usedJSHeapSize;
  });
  return `${(used / 2 ** 20).toFixed(0)} MB`;
}

function spread(times, high = 0.9, digits = 0) {
  const sorted = times.toSorted((a, b) => a - b);
  const p = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))].toFixed(digits);
  return `${p(0.5)} · ${p(high)} · ${p(1)} ms`;
}

function print(tables) {
  const names = [...new Set(tables.flatMap((t) => [...t.keys()]))];
  const line = (name) => `| ${name} | ${tables.map((t) => t.get(name) ?? "–").join(" | ")} |`;
  console.log([line(names[0]), `|---${"|---".repeat(tables.length)}|`, ...names.slice(1).map(line)].join("\n"));
}
