import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

const here = new URL("./", import.meta.url);
const files = readdirSync(here, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => ({ name, text: readFileSync(new URL(name, here), "utf8") }));
const shipped = files.filter(({ name }) => !/\.test\.ts$|(^|\/)(fake|server.fake|fixtures)\.ts$/.test(name));

it("has no file of more than 450 lines, and no test of more than 600", () => {
  const written = files.filter(({ name }) => name !== "wire.ts"); // generated
  const limit = (name: string) => (name.endsWith(".test.ts") ? 600 : 450);
  const long = written.filter(({ name, text }) => text.split("\n").length - 1 > limit(name));
  expect(long.map(({ name }) => name)).toEqual([]);
  expect(files.length).toBeGreaterThan(40); // the search found the files
});

it("keeps no global object of a page: each is looked up when it is used", () => {
  const early = /^(export )?(const|let) .*\b(document|window|location|localStorage)\./m;
  expect(shipped.filter(({ text }) => early.test(text)).map(({ name }) => name)).toEqual([]);
});

it("runs everywhere: it imports its own files and the parser only", () => {
  const imports = shipped.flatMap(({ name, text }) =>
    [...text.matchAll(/^(?:import|export)[^;"]* from "([^"]+)"/gm)].map((m) => ({ name, from: m[1] ?? "" })),
  );
  const foreign = imports.filter(({ from }) => !from.startsWith(".") && from !== "eventsource-parser");
  expect(foreign).toEqual([]);
  expect(imports.length).toBeGreaterThan(40);
});
