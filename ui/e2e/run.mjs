// Runs the checks against the real program, two at a time:
//
//     [ONLY='part of a name'] node e2e/run.mjs [--gate]
//
// --gate leaves out the checks that full.mjs names. A browser on a busy machine is
// sometimes slow, so a failed check runs a second time, and the summary lists it. To debug
// a flaky check, set ONCE=1, and JOBS=1 to run one check at a time.
import { fork } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { onlyInFull } from "./full.mjs";
import { clear, closeBrowser, openBrowser } from "./lab.mjs";

const folder = new URL(".", import.meta.url);

if (process.send) await work();
else process.exit(await lead());

/** Gives each check to one of the workers, and returns the exit status. */
async function lead() {
  const gate = process.argv.includes("--gate");
  const only = process.env.ONLY ?? "";
  const left = [];
  const gone = new Set(onlyInFull); // names that no check has any more
  for (const file of readdirSync(folder)
    .filter((name) => name.endsWith(".e2e.mjs"))
    .sort()) {
    const { checks } = await import(new URL(file, folder));
    for (const name of Object.keys(checks)) {
      gone.delete(name);
      if (`${file}: ${name}`.includes(only) && !(gate && onlyInFull.has(name))) left.push({ file, name });
    }
  }
  const count = left.length;
  if (count === 0) console.log(`no check has "${only}" in its file or its name`);
  const failed = [...gone].map((name) => `full.mjs names a check that does not exist: ${name}`);
  for (const name of failed) console.log(`FAIL  ${name}`);
  const flaky = [];
  // Each worker gets a check at once: one that is let go before it has begun never ends.
  const ended = Array.from({ length: Math.min(Number(process.env.JOBS ?? 2), count) }, () => {
    const worker = fork(fileURLToPath(import.meta.url), { stdio: "inherit" });
    let current;
    const next = () => {
      current = left.shift();
      if (current) worker.send(current);
      else worker.disconnect();
    };
    worker.on("message", ({ passed, tries }) => {
      if (!passed) failed.push(current.name);
      else if (tries > 1) flaky.push(current.name);
      next();
    });
    next();
    return new Promise((ok) =>
      worker.on("exit", (code) => {
        if (code !== 0) {
          failed.push(current.name);
          console.log(`FAIL  ${current.file}: ${current.name}\n      its worker ended`);
        }
        ok();
      }),
    );
  });
  await Promise.all(ended);
  console.log(`${count} checks, ${failed.length} failed, ${flaky.length} only at the second attempt`);
  for (const name of flaky) console.log(`      ${name}`);
  return failed.length > 0 || count === 0 ? 1 : 0;
}

/** Runs the checks that the leader sends, in a browser of its own. */
async function work() {
  const tries = process.env.ONCE ? 1 : 2;
  await openBrowser();
  process.on("message", async ({ file, name }) => {
    const { checks } = await import(new URL(file, folder));
    for (let n = 1; n <= tries; n++) {
      const passed = await passes(file, name, checks[name], n < tries);
      if (passed || n === tries) {
        process.send({ passed, tries: n });
        return;
      }
    }
  });
  process.on("disconnect", async () => {
    await closeBrowser();
    process.exit(0);
  });
}

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
