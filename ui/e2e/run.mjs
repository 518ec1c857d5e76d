// Runs the checks against the real program: node e2e/run.mjs [part of a name].
//
// A browser on a busy machine is late now and then, so a check that fails is made
// once more, from the beginning; that it had to be is said. Who looks for what makes
// a check unsteady sets ONCE=1.
import { readdirSync } from "node:fs";
import { clear, closeBrowser, openBrowser } from "./lab.mjs";

const folder = new URL(".", import.meta.url);
const only = process.argv[2] ?? "";
const tries = process.env.ONCE ? 1 : 2;
const failed = [];
const unsteady = [];
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
      if (await holds(file, name, check, n < tries)) {
        if (n > 1) unsteady.push(name);
        break;
      }
      if (n === tries) failed.push(name);
    }
  }
}
await closeBrowser();
console.log(`${count} checks, ${failed.length} failed, ${unsteady.length} only at the second attempt`);
for (const name of unsteady) console.log(`      ${name}`);
process.exit(failed.length > 0 || count === 0 ? 1 : 0);

async function holds(file, name, check, again) {
  const began = performance.now();
  try {
    await within(90_000, check());
    console.log(`ok    ${name} (${Math.round(performance.now() - began)} ms)`);
    return true;
  } catch (err) {
    const stack = String(err.stack ?? err).replaceAll("\n", "\n      ");
    console.log(`${again ? "AGAIN" : "FAIL "} ${file}: ${name}\n      ${stack}`);
    return false;
  } finally {
    await clear(); // a check that failed has not tidied up
  }
}

function within(ms, done) {
  let timer;
  const late = new Promise((_, no) => {
    timer = setTimeout(() => no(new Error(`not done after ${ms} ms`)), ms);
  });
  return Promise.race([done, late]).finally(() => clearTimeout(timer));
}
