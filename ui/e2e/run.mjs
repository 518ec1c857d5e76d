// Runs the checks against the real program: node e2e/run.mjs [part of a name].
//
// A browser on a busy machine is sometimes slow, so a failed check runs a second
// time, and the summary lists it. To debug a flaky check, set ONCE=1.
import { readdirSync } from "node:fs";
import { clear, closeBrowser, openBrowser } from "./lab.mjs";

const folder = new URL(".", import.meta.url);
const only = process.argv[2] ?? "";
const tries = process.env.ONCE ? 1 : 2;
const failed = [];
const flaky = [];
let count = 0;

await openBrowser();
for (const file of readdirSync(folder)
  .filter((name) => name.endsWith(".e2e.mjs"))
  .sort()) {
  const { checks } = await import(new URL(file, folder));
  for (const [name, check] of Object.entries(checks)) {
    if (!`${file} ${name}`.includes(only)) continue;
    count++;
    for (let n = 1; n <= tries; n++) {
      if (await passes(file, name, check, n < tries)) {
        if (n > 1) flaky.push(name);
        break;
      }
      if (n === tries) failed.push(name);
    }
  }
}
await closeBrowser();
console.log(`${count} checks, ${failed.length} failed, ${flaky.length} only at the second attempt`);
for (const name of flaky) console.log(`      ${name}`);
process.exit(failed.length > 0 || count === 0 ? 1 : 0);

async function passes(file, name, check, again) {
  const began = performance.now();
  try {
    await within(240_000, check());
    console.log(`ok    ${name} (${Math.round(performance.now() - began)} ms)`);
    return true;
  } catch (err) {
    const stack = String(err.stack ?? err).replaceAll("\n", "\n      ");
    console.log(`${again ? "AGAIN" : "FAIL "} ${file}: ${name}\n      ${stack}`);
    return false;
  } finally {
    await clear(); // a failed check has not cleaned up
  }
}

function within(ms, done) {
  let timer;
  const late = new Promise((_, no) => {
    timer = setTimeout(() => no(new Error(`not done after ${ms} ms`)), ms);
  });
  return Promise.race([done, late]).finally(() => clearTimeout(timer));
}
