import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

const at = (path: string) => new URL(`../../${path}`, import.meta.url);
const filesIn = (folder: string, ending: string) =>
  readdirSync(at(folder))
    .filter((name) => name.endsWith(ending))
    .map((name) => readFileSync(at(`${folder}/${name}`), "utf8"));

const note = readFileSync(at("docs/design/0012-screen.md"), "utf8");
const table = note.split("**Promises.**")[1]?.split("**Measured**")[0] ?? "";
const rows = table.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| promise"));

it("has a check with the given name for each promise of the design note", () => {
  const checks = new Set([
    ...filesIn("ui/e2e", ".e2e.mjs").flatMap((text) => [...text.matchAll(/^ {2}"(.+)":/gm)].map((m) => m[1])),
    ...filesIn("web", "_test.go").flatMap((text) => [...text.matchAll(/^func (Test\w+)/gm)].map((m) => m[1])),
  ]);
  const named = rows.map((row) => [...row.matchAll(/`([^`]+)`/g)].map((m) => m[1]));
  expect(named.filter((names) => names.length === 0)).toEqual([]);
  expect(named.flat().filter((name) => !checks.has(name))).toEqual([]);
  expect(rows.length).toBeGreaterThan(20);
});

it("marks with (full) the checks that the gate leaves out", () => {
  const full = readFileSync(at("ui/e2e/full.mjs"), "utf8");
  const names = rows.flatMap((row) => [...row.matchAll(/`([^`]+)`( \(full\))?/g)]);
  expect(
    names.filter(([, name, mark]) => full.includes(`"${name}"`) !== Boolean(mark)).map(([, name]) => name),
  ).toEqual([]);
});
