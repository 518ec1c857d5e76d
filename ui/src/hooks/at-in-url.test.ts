import { expect, it } from "vitest";
import { isAddressOf } from "./at-in-url";

it.each([
  ["/s/one", true],
  ["/s/one/", true],
  ["/s/two", false],
  ["/compare", false],
  ["/", false],
])("the page of session one has %s as its address: %s", (path, so) => {
  expect(isAddressOf("one", path)).toBe(so);
});

it("recognizes an id that is encoded in the URL", () => {
  expect(isAddressOf("a b", "/s/a%20b")).toBe(true);
});
