// Fails if the first page loads more than the promised size.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { root } from "./source.mjs";

const limit = 120 * 1024;
const dist = process.env.DIST ?? join(root, "web/dist");

// The files that index.html names are loaded at once, and so are their imports.
const seen = new Set();
function load(path) {
  if (seen.has(path)) return;
  seen.add(path);
  const text = readFileSync(join(dist, path), "utf8");
  for (const [, name] of text.matchAll(/(?:^|[;}])(?:import|export)\b[^"'`;()]*["'](\.\/[^"']+\.js)["']/g)) {
    load(`assets/${name.slice(2)}`);
  }
}
const html = readFileSync(join(dist, "index.html"), "utf8");
for (const [, path] of html.matchAll(/(?:src|href)="\/(assets\/[^"]+\.js)"/g)) load(path);
if (seen.size === 0) throw new Error("index.html names no script");

let sum = 0;
for (const path of seen) {
  const size = gzipSync(readFileSync(join(dist, path)), { level: 9 }).length;
  sum += size;
  console.log(`${(size / 1024).toFixed(1).padStart(8)} KB gz  ${path}`);
}
console.log(
  `${(sum / 1024).toFixed(1).padStart(8)} KB gz  of JavaScript before the first page, of ${limit / 1024} at most`,
);
if (sum > limit) process.exit(1);
