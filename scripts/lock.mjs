// Fails if the lock file would install different packages on another system: npm
// leaves out binaries for other systems that a registry did not have yet.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages;
const wrong = [];
for (const [path, entry] of Object.entries(lock)) {
  const own = entry.link || !path.includes("node_modules/"); // a workspace of this repository
  if (!own && !entry.integrity && !entry.inBundle) wrong.push(`${path} has no integrity`);
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const nested = lock[`${path}/node_modules/${name}`] ?? lock[`node_modules/${name}`];
    if (!nested) wrong.push(`${path} wants ${name}@${version}, which is not locked`);
  }
}
for (const [path, entry] of Object.entries(lock)) {
  if (path.includes("node_modules/")) continue;
  for (const [name, version] of Object.entries({ ...entry.dependencies, ...entry.devDependencies })) {
    if (!/^(npm:.*@)?\d/.test(version)) wrong.push(`${path}: ${name}@${version} is not pinned`);
  }
}
// A registry's host in the lock file would bind everyone to that registry.
for (const [path, entry] of Object.entries(lock)) {
  if (!entry.link && entry.resolved) wrong.push(`${path} names a registry: ${entry.resolved}`);
}
if (wrong.length > 0) {
  console.error(wrong.join("\n"));
  process.exit(1);
}
