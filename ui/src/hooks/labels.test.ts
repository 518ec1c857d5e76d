import { expect, it } from "vitest";
import { changeOfTags, has, starred, tagsIn, tagsOf } from "./labels";

it("reads and changes tags", () => {
  expect(tagsOf({ labels: { "tag.b": "true", "tag.a": "x", starred: "true", "tag.": "x", tagged: "x" } })).toEqual([
    "a",
    "b",
  ]);
  expect(tagsOf({})).toEqual([]);
  expect(tagsIn(" back end,  ui/web <b> back ")).toEqual(["b", "back", "end", "ui-web"]);
  expect(tagsIn(" , ")).toEqual([]);
  expect(changeOfTags(["a", "b"], ["b", "c"])).toEqual({ "tag.a": null, "tag.c": "true" });
  expect(has({ labels: { starred: "" } }, starred)).toBe(true);
  expect(has({}, starred)).toBe(false);
});
