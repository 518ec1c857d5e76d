import { describe, expect, it } from "vitest";
import { readJson } from "./read-json";

describe("what a user typed as JSON", () => {
  it("is read", () => {
    expect(readJson('{"a": [1, null]}')).toEqual({ value: { a: [1, null] } });
    expect(readJson(" 7 ")).toEqual({ value: 7 });
  });

  it("is refused with the place of the fault", () => {
    expect(readJson('{\n  "a": 1,\n  b: 2\n}').problem).toMatch(/^This is not JSON: line 3, column 3: look at “b: 2”/);
    expect(readJson('{"a": 1} x').problem).toMatch(/line 1, column 10/);
  });

  it("is refused if it ends too early, or is empty", () => {
    expect(readJson('{"a": [1,').problem).toMatch(/it ends too early/);
    expect(readJson("  ").problem).toMatch(/is empty/);
  });
});
