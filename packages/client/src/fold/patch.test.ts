import { expect, test } from "vitest";
import { PatchBudget, patch, Unpatchable } from "./patch.ts";
import type { Json } from "./types.ts";

const run = (doc: Json, ...ops: Json[]) => patch(doc, ops, new PatchBudget());

test.each<[string, Json, Json[], Json]>([
  ["adds a member", {}, [{ op: "add", path: "/a", value: 1 }], { a: 1 }],
  ["inserts an element", [1, 3], [{ op: "add", path: "/1", value: 2 }], [1, 2, 3]],
  ["appends", { a: [1] }, [{ op: "add", path: "/a/-", value: 2 }], { a: [1, 2] }],
  ["removes", { a: [1, 2], b: 0 }, [{ op: "remove", path: "/a/0" }], { a: [2], b: 0 }],
  ["replaces all", { a: 1 }, [{ op: "replace", path: "", value: [null] }], [null]],
  ["moves", { a: { b: 1 }, c: {} }, [{ op: "move", from: "/a/b", path: "/c/d" }], { a: {}, c: { d: 1 } }],
  ["copies", { a: [1] }, [{ op: "copy", from: "/a", path: "/b" }], { a: [1], b: [1] }],
  ["tests", { a: { x: [1, 2] } }, [{ op: "test", path: "/a", value: { x: [1, 2] } }], { a: { x: [1, 2] } }],
  [
    "reads escapes",
    { "a/b": 1, "m~n": 2 },
    [
      { op: "remove", path: "/a~1b" },
      { op: "replace", path: "/m~0n", value: 3 },
    ],
    { "m~n": 3 },
  ],
  ["accepts null as a value", {}, [{ op: "add", path: "/a", value: null }], { a: null }],
])("a patch %s", (_, doc, ops, want) => {
  const before = structuredClone(doc);
  expect(run(doc, ...ops)).toEqual(want);
  expect(doc).toEqual(before); // others may share it
});

test.each<[string, Json, Json]>([
  ["a member that is not there", {}, { op: "replace", path: "/a", value: 1 }],
  ["an index beyond the end", [], { op: "add", path: "/1", value: 1 }],
  ["an index with zeros", [1, 2], { op: "remove", path: "/01" }],
  ["the end of an array", [1], { op: "remove", path: "/-" }],
  ["a path through text", { a: "x" }, { op: "add", path: "/a/b", value: 1 }],
  ["a path without a slash", {}, { op: "add", path: "a", value: 1 }],
  ["no path", {}, { op: "add", value: 1 }],
  ["no value", {}, { op: "add", path: "/a" }],
  ["a move into itself", { a: {} }, { op: "move", from: "/a", path: "/a/b" }],
  ["a test that fails", { a: 1 }, { op: "test", path: "/a", value: "1" }],
  ["an unknown operation", {}, { op: "merge", path: "" }],
  ["an inherited member", {}, { op: "remove", path: "/constructor" }],
  ["a string as an operation", {}, "add"],
])("%s cannot be patched", (_, doc, op) => {
  expect(() => run(doc, op)).toThrow(Unpatchable);
});

test("a patch that fails changes nothing", () => {
  const doc = { a: [1] };
  expect(() => run(doc, { op: "add", path: "/a/-", value: 2 }, { op: "remove", path: "/b" })).toThrow(Unpatchable);
  expect(doc).toEqual({ a: [1] });
});

test("the prototype of objects cannot be reached", () => {
  const out = run({}, { op: "add", path: "/__proto__", value: { pwned: true } }) as { pwned?: boolean };
  expect(Object.hasOwn(out, "__proto__")).toBe(true);
  expect(out.pwned).toBeUndefined();
  expect(({} as { pwned?: boolean }).pwned).toBeUndefined();
  expect(() => run({}, { op: "add", path: "/__proto__/pwned", value: 1 })).toThrow(Unpatchable);
});

test("a document that doubles with every operation is stopped by the budget", () => {
  const budget = new PatchBudget();
  let doc: Json = { a: ["x".repeat(1000)] };
  expect(() => {
    for (let i = 0; i < 100; i++) doc = patch(doc, [{ op: "copy", from: "", path: `/a/${i + 1}` }], budget);
  }).toThrow(Unpatchable);
});

test("unchanged parts are shared", () => {
  const doc = { a: { deep: [1] }, b: { n: 1 } };
  const out = run(doc, { op: "replace", path: "/b/n", value: 2 }) as typeof doc;
  expect(out.a).toBe(doc.a);
});
