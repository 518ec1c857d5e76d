import { expect, it } from "vitest";
import { readSaved, sameFilter } from "./saved-filters";

it("reads saved filters, and leaves out what is none", () => {
  const stored = [
    { name: "Failed", search: { status: "failed", view: "time", other: 1 } },
    { name: "", search: {} },
    { name: 5, search: {} },
    { name: "No search" },
    null,
    "x",
  ];
  expect(readSaved(JSON.stringify(stored))).toEqual([{ name: "Failed", search: { status: "failed" } }]);
  for (const bad of [null, "", "{", "5", '{"a":1}', "null"]) expect(readSaved(bad)).toEqual([]);
  expect(readSaved(JSON.stringify(Array.from({ length: 99 }, (_, i) => ({ name: `n${i}`, search: {} }))))).toHaveLength(
    30,
  );
});

it("compares filters by what is set", () => {
  expect(sameFilter({ status: "failed", agent: undefined }, { status: "failed" })).toBe(true);
  expect(sameFilter({ q: "a", status: "x" }, { status: "x", q: "a" })).toBe(true);
  expect(sameFilter({ status: "failed" }, {})).toBe(false);
});
