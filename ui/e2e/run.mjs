// Runs the checks against the real program: node e2e/run.mjs [part of a name].
import { readdirSync } from "node:fs";
import { closeBrowser, openBrowser } from "./lab.mjs";

const folder = new URL(".", import.meta.url);
const only = process.argv[2] ?? "";
const failed = [];
let count = 0;

await openBrowser();
for (const file of readdirSync(folder)
  .filter((name) => name.endsWith(".e2e.mjs"))
  .sort()) {
  const { checks } = await import(new URL(file, folder));
  for (const [name, check] of Object.entries(checks)) {
    if (!`${file} ${name}`.includes(only)) continue;
    count++;
    const began = performance.now();
    try {
      await within(60_000, check());
      console.log(`ok    ${name} (${Math.round(performance.now() - began)} ms)`);
    } catch (err) {
      failed.push(name);
      console.log(`FAIL  ${file}: ${name}\n      ${String(err.stack ?? err).replaceAll("\n", "\n      ")}`);
    }
  }
}
await closeBrowser();
console.log(`${count} checks, ${failed.length} failed`);
process.exit(failed.length > 0 || count === 0 ? 1 : 0);

function within(ms, done) {
  let timer;
  const late = new Promise((_, no) => {
    timer = setTimeout(() => no(new Error(`not done after ${ms} ms`)), ms);
  });
  return Promise.race([done, late]).finally(() => clearTimeout(timer));
}
