// One hash of all sources of the build. web/stale_test.go computes the same.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

// The root of the repository.
export const root = fileURLToPath(new URL("../..", import.meta.url));

const single = [
  "package-lock.json",
  "package.json",
  "ui/alias.ts",
  "ui/index.html",
  "ui/package.json",
  "ui/recording.config.ts",
  "ui/tsconfig.json",
  "ui/vite.config.ts",
];
const folders = ["packages/client/src", "ui/public", "ui/scripts", "ui/src"];

// files returns the paths, with slashes, in byte order, without tests.
export function files() {
  const out = [...single];
  for (const folder of folders) walk(folder, out);
  return out.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}

function walk(folder, out) {
  let entries = [];
  try {
    entries = readdirSync(join(root, folder), { withFileTypes: true });
  } catch (err) {
    if (err.code !== "ENOENT") throw err;
  }
  for (const entry of entries) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) walk(path, out);
    else if (!/\.test\.tsx?$/.test(entry.name)) out.push(path);
  }
}

// sourceHash is the sha256 of one line per file: its hash, two spaces, its path.
export function sourceHash() {
  const all = createHash("sha256");
  for (const path of files()) {
    const one = createHash("sha256")
      .update(readFileSync(join(root, path)))
      .digest("hex");
    all.update(`${one}  ${path}\n`);
  }
  return all.digest("hex");
}
