// Builds the package in the working folder into dist/: JavaScript modules with their
// declarations, and the licence that the tarball includes.
import { execFileSync } from "node:child_process";
import { copyFileSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

rmSync("dist", { recursive: true, force: true });
copyFileSync(root("LICENSE"), "LICENSE");
execFileSync(process.execPath, [root("node_modules/typescript/bin/tsc"), "-p", "tsconfig.build.json"], {
  stdio: "inherit",
});
