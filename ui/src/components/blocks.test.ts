import { describe, expect, it } from "vitest";
import { blocksOf, hasDefinitions } from "./blocks";

describe("blocksOf", () => {
  const cases: [name: string, text: string, blocks: number][] = [
    ["nothing", "", 0],
    ["one paragraph", "a\nb", 1],
    ["two paragraphs", "a\n\nb", 2],
    ["code with blank lines", "a\n\n```go\nx\n\ny\n```\n\nb", 3],
    ["code that is still open", "a\n\n```\nx\n\ny\n\nz", 2],
    ["a shorter fence inside", "````\n```\n\nx\n```\n\ny\n````", 1],
    ["a loose list", "- a\n\n- b\n\n- c", 1],
    ["a list and text after it", "- a\n- b\n\ntext", 2],
    ["text indented under a list", "- a\n\n  more\n\ntext", 2],
    ["a table", "| a |\n|---|\n| 1 |\n\ntext", 2],
  ];
  it.each(cases)("%s", (_, text, blocks) => {
    const got = blocksOf(text);
    expect(got).toHaveLength(blocks);
    expect(got.join("")).toBe(text);
  });

  it("keeps the earlier blocks unchanged while a text grows", () => {
    const text = "# A\n\nfirst **bold**\n\n```\ncode\n\nmore\n```\n\nlast";
    let before: string[] = [];
    for (let i = 1; i <= text.length; i++) {
      const now = blocksOf(text.slice(0, i));
      expect(now.length).toBeGreaterThanOrEqual(before.length);
      expect(now.slice(0, before.length - 1)).toEqual(before.slice(0, -1));
      before = now;
    }
  });
});

it.each([
  ["a\n\n[b]: https://x", true],
  ["> [^1]: note", true],
  ["a [b]: c", false],
  ["[x] done", false],
  [`${"\n".repeat(200_000)}${"[".repeat(200_000)}`, false],
])("hasDefinitions %#", (text, has) => {
  expect(hasDefinitions(text)).toBe(has);
});
