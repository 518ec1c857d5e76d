// Measures the screen with a long session: node e2e/speed.mjs [events]. It prints
// numbers and judges nothing: machines differ.
import { closeBrowser, openBrowser, Server, turn, visitor } from "./lab.mjs";

const wanted = Number(process.argv[2] ?? 200_000);
const words = Array.from({ length: 89 }, (_, i) => `word${i} **bold** \`code\` `);
const perTurn = turn("x", "", words).length;

const server = await Server.start();
await openBrowser();
await server.session({ id: "big", title: `${wanted} events` });
let began = performance.now();
let head = 1;
for (let i = 0; head < wanted; ) {
  const batch = [];
  while (batch.length < 20_000 && head + batch.length < wanted) batch.push(...turn(`i${i}`, `question ${i++}`, words));
  ({ head } = await server.call(
    "POST",
    "/sessions/big/events",
    batch.map((e) => JSON.stringify(e)).join("\n"),
    "application/x-ndjson",
  ));
}
report("appending", performance.now() - began);
console.log(`${head} events, ${perTurn} a turn`);

const v = await visitor(server);
const { page } = v;
began = performance.now();
await page.goto(`${server.url}/s/big`);
await page.getByRole("region", { name: "Conversation" }).getByRole("listitem").first().waitFor();
report("first row", performance.now() - began);
await page.getByText(new RegExp(`^event ${head} of`)).waitFor();
report("playhead at the head", performance.now() - began);

const slider = page.getByRole("slider");
const box = await slider.boundingBox();
const position = () => page.getByText(/^event [\d,]+ of/).innerText();
const times = [];
for (let i = 0; i < 30; i++) {
  const x = box.x + (box.width * ((i * 37) % 100)) / 100;
  times.push(
    await page.evaluate(
      ({ x, y }) =>
        new Promise((ok) => {
          const began = performance.now();
          const seen = new MutationObserver(() => {
            if (document.querySelector("[aria-busy=true]")) return;
            seen.disconnect();
            requestAnimationFrame(() => ok(performance.now() - began));
          });
          seen.observe(
            document.querySelector("[role=region][aria-label=Conversation], section[aria-label=Conversation]") ??
              document.body,
            { subtree: true, childList: true, characterData: true },
          );
          const at = document.elementFromPoint(x, y);
          for (const type of ["pointerdown", "pointerup", "click"]) {
            at.dispatchEvent(
              new PointerEvent(type, {
                bubbles: true,
                clientX: x,
                clientY: y,
                button: 0,
                buttons: type === "pointerdown" ? 1 : 0,
                pointerId: 1,
                isPrimary: true,
              }),
            );
          }
          setTimeout(() => ok(Number.NaN), 3000);
        }),
      { x, y: box.y + box.height / 2 },
    ),
  );
}
times.sort((a, b) => a - b);
console.log(
  `seek (click to drawn): median ${times[15]?.toFixed(0)} ms, p90 ${times[27]?.toFixed(0)} ms, most ${times.at(-1)?.toFixed(0)} ms; now at ${await position()}`,
);

const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
console.log(`DOM nodes: ${nodes}`);
const memory = await page.evaluate(() => performance.memory?.usedJSHeapSize / 2 ** 20);
console.log(`heap: ${memory?.toFixed(0)} MB`);

const frames = await page.evaluate(
  () =>
    new Promise((ok) => {
      const out = [];
      let last = performance.now();
      const frame = (now) => {
        out.push(now - last);
        last = now;
        if (out.length < 240) requestAnimationFrame(frame);
        else ok(out.slice(5).sort((a, b) => a - b));
      };
      document.activeElement?.blur?.();
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key: " ", code: "Space", bubbles: true }));
      requestAnimationFrame(frame);
    }),
);
const p = (share) => frames[Math.floor(frames.length * share)].toFixed(1);
console.log(
  `frames while playing: p50 ${p(0.5)} ms, p95 ${p(0.95)} ms, most ${frames.at(-1).toFixed(1)} ms; at ${await position()}`,
);
await v.end().catch((e) => console.log(String(e)));
await closeBrowser();
await server.stop();

function report(what, ms) {
  console.log(`${what}: ${ms.toFixed(0)} ms`);
}
