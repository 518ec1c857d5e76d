import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

const here = new URL("./", import.meta.url);
const files = readdirSync(here, { recursive: true, encoding: "utf8" })
  .filter((name) => /\.tsx?$/.test(name))
  .map((name) => ({ name, text: readFileSync(new URL(name, here), "utf8") }));

it("has no file of more than 450 lines", () => {
  const maxLines = 450;
  expect(files.filter(({ text }) => text.split("\n").length - 1 > maxLines).map(({ name }) => name)).toEqual([]);
  expect(files.length).toBeGreaterThan(100); // the search found the files
});

it("talks to the server with @tapedeck/client only", () => {
  const own = /\b(fetch|EventSource|WebSocket|XMLHttpRequest|sendBeacon)\(/;
  const code = files.filter(({ name }) => !/\.test\.tsx?$/.test(name));
  expect(code.filter(({ text }) => own.test(text.replace(/refetch\(/g, ""))).map(({ name }) => name)).toEqual([]);
  expect(code.filter(({ text }) => text.includes('from "@tapedeck/client')).length).toBeGreaterThan(50);
});

it("has no re-exports: a name is imported from the file that defines it", () => {
  const reexport = /^export\s+(type\s+)?[{*]/m;
  expect(files.filter(({ text }) => reexport.test(text)).map(({ name }) => name)).toEqual([]);
});
