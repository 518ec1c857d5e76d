import { expect, it } from "vitest";
import { openingOf, plainOpening } from "./recording-options";

it("asks for no more than what was chosen", () => {
  expect(openingOf(plainOpening, 40, 90)).toEqual({});
  expect(openingOf({ ...plainOpening, theme: "dark" }, 40, 90)).toEqual({ theme: "dark" });
  expect(openingOf({ ...plainOpening, start: "here" }, 40, 90)).toEqual({ start: 40 });
  expect(openingOf({ ...plainOpening, poster: "here" }, 40, 90)).toEqual({ poster: 40, start: 0 });
  expect(openingOf({ ...plainOpening, poster: "end", start: "here" }, 40, 90)).toEqual({ poster: 90, start: 40 });
});

it("asks for no moment beyond the end of the export", () => {
  expect(openingOf({ ...plainOpening, poster: "here", start: "here" }, 99, 90)).toEqual({ poster: 90, start: 90 });
});
