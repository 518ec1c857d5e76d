import { expect, it } from "vitest";
import { contrast, css, indexed, palettes, readable } from "./colours";

it("has the 256 colours", () => {
  expect(css(indexed(palettes.dark, 1))).toBe("#ff8a80");
  expect(css(indexed(palettes.dark, 16))).toBe("#000000");
  expect(css(indexed(palettes.dark, 196))).toBe("#ff0000");
  expect(css(indexed(palettes.dark, 21))).toBe("#0000ff");
  expect(css(indexed(palettes.dark, 255))).toBe("#eeeeee");
});

it("makes every colour readable on any background", () => {
  for (const p of [palettes.light, palettes.dark]) {
    for (let i = 0; i < 256; i++) {
      for (const back of [p.back, indexed(p, 4), 0x808080, 0xffff00, 0]) {
        expect(contrast(readable(indexed(p, i), back), back)).toBeGreaterThanOrEqual(4.5);
      }
    }
  }
});

it("does not change a readable colour", () => {
  expect(readable(0xff0000, 0)).toBe(0xff0000);
});
