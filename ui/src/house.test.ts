import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

const here = new URL("./", import.meta.url);
const files = readdirSync(here, { recursive: true, encoding: "utf8" })
  .filter((name) => /\.tsx?$/.test(name))
  .map((name) => ({ name, text: readFileSync(new URL(name, here), "utf8") }));

it("has no file that is too long to be read at once", () => {
  const most = 450;
  const written = files.filter(({ name }) => name !== "wire.ts"); // generated
  expect(written.filter(({ text }) => text.split("\n").length - 1 > most).map(({ name }) => name)).toEqual([]);
  expect(files.length).toBeGreaterThan(100); // they were found
});

it("has no file that hands on what another one has: a name is imported from where it is made", () => {
  const hands = /^export\s+(type\s+)?[{*]/m;
  expect(files.filter(({ text }) => hands.test(text)).map(({ name }) => name)).toEqual([]);
});
