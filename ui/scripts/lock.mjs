// Fails if the lock file would install different packages on another system: npm
// leaves out binaries for other systems that a registry did not have yet.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./source.mjs";

const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages;
const wrong = [];
for (const [path, entry] of Object.entries(lock)) {
  if (path && !entry.integrity && !entry.inBundle) wrong.push(`${path} has no integrity`);
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const nested = lock[`${path}/node_modules/${name}`] ?? lock[`node_modules/${name}`];
    if (!nested) wrong.push(`${path} wants ${name}@${version}, which is not locked`);
  }
}
for (const [name, version] of Object.entries({ ...lock[""].dependencies, ...lock[""].devDependencies })) {
  if (!/^\d/.test(version)) wrong.push(`${name}@${version} is not pinned`);
}
if (wrong.length > 0) {
  console.error(wrong.join("\n"));
  process.exit(1);
}
