// Checks the npm packages as others get them: it packs each, installs the tarballs into a
// project of its own, and there checks the types, the sizes, the examples of two pages of
// docs, following through kills of the real program, and useChat in a browser.
//
//     node test/packages/run.mjs --binary bin/tapedeck
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "vite";
import { Server } from "../../conformance/harness.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const here = fileURLToPath(new URL(".", import.meta.url));
const binary = resolve(process.argv[process.argv.indexOf("--binary") + 1] ?? "");
const consumer = mkdtempSync(join(tmpdir(), "tapedeck-consumer-"));
const names = readdirSync(join(root, "packages")).filter((n) => n !== "node_modules");
// Of what a page loads, in KB after gzip.
const sizes = [
  ["@tapedeck/client", 12, 'export * from "@tapedeck/client";'],
  ["@tapedeck/ai-sdk", 14, 'export * from "@tapedeck/ai-sdk"; export * from "@tapedeck/ai-sdk/react";', ["react"]],
  ["with the recorder", 16, 'export * from "@tapedeck/client"; export * from "@tapedeck/client/record";'],
  ["with the player", 30, 'export * from "@tapedeck/client"; export * from "@tapedeck/client/player";'],
];

let passed = 0;
async function check(name, f) {
  await f();
  passed++;
  console.log(`ok    ${name}`);
}

const run = (program, args, cwd = consumer, env = {}) =>
  execFileSync(program, args, {
    cwd,
    stdio: ["ignore", "pipe", "inherit"],
    encoding: "utf8",
    env: { ...process.env, ...env },
  });

try {
  const tarballs = [];
  for (const name of names) {
    await check(`${name} is packed: modules, declarations, licence and nothing else`, () => {
      const folder = join(root, "packages", name);
      const [made] = JSON.parse(run("npm", ["pack", "--json", "--silent", "--pack-destination", consumer], folder));
      tarballs.push(`./${made.filename}`);
      const files = made.files.map((f) => f.path);
      for (const wanted of ["LICENSE", "README.md", "package.json", "dist/index.js", "dist/index.d.ts"])
        if (!files.includes(wanted)) throw new Error(`${name} lacks ${wanted}`);
      const extra = files.filter(
        (f) => !/^(dist\/.*\.(js|d\.ts)|LICENSE|README\.md|package\.json)$/.test(f) || /test|fake|fixtures/.test(f),
      );
      if (extra.length > 0) throw new Error(`${name} has ${extra.join(", ")}`);
    });
  }

  cpSync(join(here, "consumer"), consumer, { recursive: true });
  await check("the tarballs are installed", () => {
    run("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", "--silent", "--ignore-scripts", ...tarballs]);
    // The tools come from the repository; a consumer has its own.
    for (const tool of ["typescript", "@types/node"]) {
      mkdirSync(join(consumer, "node_modules/@types"), { recursive: true });
      symlinkSync(join(root, "node_modules", tool), join(consumer, "node_modules", tool));
    }
  });

  const snippets = ["docs/typescript.md", "docs/protocol/ai-sdk.md"].flatMap(examplesOf);
  for (const config of ["tsconfig.json", "tsconfig.bundler.json"])
    await check(`the types of the packages and of ${snippets.length} examples are right (${config})`, () =>
      run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", config]),
    );

  await check("the script of @tapedeck/player has at most 90 KB", () => {
    const script = readFileSync(join(consumer, "node_modules/@tapedeck/player/dist/tapedeck-player.js"));
    const bytes = gzipSync(script, { level: 9 }).length;
    console.log(`${(bytes / 1024).toFixed(1).padStart(8)} KB gz  tapedeck-player.js`);
    if (bytes > 90 * 1024) throw new Error(`it has ${bytes} bytes`);
  });
  for (const [name, limit, code, external] of sizes)
    await check(`${name} has at most ${limit} KB`, () => size(name, limit, code, external));

  const server = new Server(binary);
  try {
    await server.start();
    for (const { name, file, code } of snippets) {
      if (!file.endsWith(".mts")) continue;
      await check(`${name} runs: ${code.trim().split("\n")[0]}`, () => {
        const js = file.replace(".mts", ".mjs");
        const text = readFileSync(join(consumer, "out", js), "utf8").replaceAll("http://127.0.0.1:4747", server.url);
        writeFileSync(join(consumer, js), text);
        run(process.execPath, [js], consumer, { TAPEDECK_TOKEN: "x" });
      });
    }
  } finally {
    await server.stop();
  }

  await check("following through kills of the server, in Node", () =>
    console.log(
      run(process.execPath, ["--test", "--test-reporter=spec", "follow.test.mjs"], consumer, {
        HARNESS: join(root, "conformance/harness.mjs"),
        TAPEDECK_BIN: binary,
      }),
    ),
  );
  await check("recording agents through a kill of the server, in Node", () =>
    console.log(
      run(process.execPath, ["--test", "--test-reporter=spec", "record.test.mjs"], consumer, {
        HARNESS: join(root, "conformance/harness.mjs"),
        TAPEDECK_BIN: binary,
      }),
    ),
  );
  await check("useChat of the AI SDK 5, 6 and 7, in Node", () =>
    console.log(
      run(process.execPath, ["--test", "--test-reporter=spec", "aisdk.test.mjs"], consumer, {
        HARNESS: join(root, "conformance/harness.mjs"),
        TAPEDECK_BIN: binary,
      }),
    ),
  );
  await check("useChat in a browser, at another origin, with tokens of one session", () =>
    console.log(run(process.execPath, [join(here, "browser.mjs"), "--binary", binary, "--consumer", consumer])),
  );
  console.log(`${passed} passed, 0 failed`);
} catch (err) {
  console.error(`${err.message}\n${err.stdout ?? ""}`);
  process.exitCode = 1;
} finally {
  rmSync(consumer, { recursive: true, force: true });
}

/** Writes the examples of a page, which begin with an import, as files: those in ts are programs, those in tsx are checked only. */
function examplesOf(page) {
  const found = [...readFileSync(join(root, page), "utf8").matchAll(/^```(ts|tsx)\n(import [\s\S]*?)^```$/gm)];
  if (found.length === 0) throw new Error(`${page} has no examples`);
  return found.map(([, kind, code], i) => {
    const file = `${basename(page, ".md")}${i + 1}.${kind === "ts" ? "mts" : "tsx"}`;
    writeFileSync(join(consumer, file), `${code}\nexport {};\n`);
    return { name: `example ${i + 1} of ${page}`, file, code };
  });
}

async function size(name, limit, code, external = []) {
  const entry = join(consumer, "size.mjs");
  writeFileSync(entry, code);
  const [{ output }] = await build({
    root: consumer,
    configFile: false,
    logLevel: "error",
    build: {
      write: false,
      target: "es2022",
      lib: { entry, formats: ["es"] },
      minify: true,
      rollupOptions: { treeshake: false, external },
    },
  });
  const bytes = output.reduce((sum, o) => sum + gzipSync(o.code ?? "", { level: 9 }).length, 0);
  console.log(`${(bytes / 1024).toFixed(1).padStart(8)} KB gz  ${name}`);
  if (bytes > limit * 1024) throw new Error(`${name} has ${bytes} bytes, of ${limit * 1024} at most`);
}
