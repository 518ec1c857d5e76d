import { expect, it } from "vitest";
import { lookOf } from "./look";

const end = Number.MAX_SAFE_INTEGER;

it("opens as the address says, then as the file says, otherwise at the end", () => {
  expect(lookOf({}, "")).toEqual({ at: end });
  expect(lookOf({ start: 3 }, "")).toEqual({ at: 3 });
  expect(lookOf({ poster: 40 }, "")).toEqual({ at: 40, start: 0 });
  expect(lookOf({ poster: 40, start: 7, theme: "dark" }, "")).toEqual({ at: 40, start: 7, theme: "dark" });
  expect(lookOf({ poster: 40, start: 7, theme: "dark" }, "#at=12")).toEqual({ at: 12, theme: "dark" });
  expect(lookOf({ poster: 40, theme: "dark" }, "#poster=5&start=2&theme=light")).toEqual({
    at: 5,
    start: 2,
    theme: "light",
  });
});

it("ignores what is no offset and no theme", () => {
  expect(lookOf({}, "#at=-1&poster=x&start=1.5&theme=sepia")).toEqual({ at: end });
  expect(lookOf({ theme: "sepia" }, "#at=")).toEqual({ at: end });
});
