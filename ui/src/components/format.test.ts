import { describe, expect, it } from "vitest";
import { brief, clock, day, dollars, duration, plural, sentence, short, withoutMarks } from "./format";

describe("durations", () => {
  it.each([
    [0, "0:00", "0ms"],
    [999, "0:00", "999ms"],
    [4_200, "0:04", "4.2s"],
    [61_000, "1:01", "1m 1s"],
    [3_725_000, "1:02:05", "1h 2m"],
    [200_000_000, "55:33:20", "2d 7h"],
  ])("%i ms", (ms, onTheClock, inWords) => {
    expect(clock(ms)).toBe(onTheClock);
    expect(duration(ms)).toBe(inWords);
  });
  it("has optional tenths, and a sign", () => {
    expect(clock(95_250, true)).toBe("1:35.2");
    expect(clock(-5_000)).toBe("-0:05");
    expect(duration(undefined)).toBe("");
  });
});

it("shortens numbers", () => {
  expect([950, 4_100, 45_000, 2_300_000].map(short)).toEqual(["950", "4.1k", "45k", "2.3M"]);
  expect([0, 0.0021, 1.5].map(dollars)).toEqual(["$0.00", "$0.0021", "$1.50"]);
  expect([plural(1, "event"), plural(1200, "event")]).toEqual(["1 event", "1,200 events"]);
});

it("names days", () => {
  const now = new Date(2026, 10, 21, 12).getTime();
  expect(day(new Date(2026, 10, 21, 0, 1).toISOString(), now)).toBe("Today");
  expect(day(new Date(2026, 10, 20, 23, 59).toISOString(), now)).toBe("Yesterday");
  expect(day(new Date(2025, 0, 2).toISOString(), now)).toContain("2025");
});

it("puts text on one line", () => {
  expect(brief(" a\n  b\tc ")).toBe("a b c");
  expect(brief("x".repeat(500), 10)).toBe(`${"x".repeat(9)}…`);
});

it.each([
  ["**Done.** See `a_b.go` and *this*", "Done. See a_b.go and this"],
  ["# Title\n- one\n- two\n3. three\n> said", "Title\none\ntwo\nthree\nsaid"],
  ["[the docs](https://a.example/x) and ![a cat](cat.png)", "the docs and a cat"],
  ["2 * 3 * 4, snake_case_name, a**b", "2 * 3 * 4, snake_case_name, a**b"],
  ["```go\nx := 1\n```", " \nx := 1\n "],
  ["*** ** ` [](", "*** ** ` []("],
])("takes the marks of Markdown away: %s", (markdown, text) => expect(withoutMarks(markdown)).toBe(text));

it("takes the marks of a long line away at once", () => {
  for (const piece of ["*", "**a", "[", "`", "[a](", "# ", "~~ "])
    expect(withoutMarks(piece.repeat(640)).length).toBeLessThan(5000);
});

describe("a sentence", () => {
  it.each([
    ["the agent bot takes no input", "The agent bot takes no input."],
    ["a run is open, try again!", "A run is open, try again!"],
    ["überall ist es besetzt", "Überall ist es besetzt."],
  ])("%s begins with a capital", (text, is) => expect(sentence(text)).toBe(is));
  it.each([
    "ses_1 is busy",
    "inv_01M8 was run by the agent planner",
    "i1 has completed",
    "src/lock.go is not there",
    "lock.go is not there",
    "my-loop works elsewhere",
    "toolCallId is missing",
    "git: not found",
    '"when" cannot be x',
    "`x` is not an option",
  ])("%s keeps its first word", (text) => expect(sentence(text)).toBe(`${text}.`));
});
