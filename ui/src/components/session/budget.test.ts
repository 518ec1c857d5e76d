import { expect, test } from "vitest";
import { budgetOf } from "./budget";

const now = Date.parse("2026-01-05T12:01:00Z");

test("each limit has what was used of it, with what was granted", () => {
  expect(budgetOf({}, now)).toEqual({ texts: [], over: false });
  expect(budgetOf({ budget: { tokens: 50_000 } }, now)).toEqual({ texts: ["0 of 50k tokens"], over: false });
  expect(
    budgetOf(
      {
        budget: { tokens: 50_000, usd: 2.5, turns: 1, seconds: 60, grants: 1 },
        spent: { tokens: 99_999, usd: 0.02, turns: 1, seconds: 30, since: "2026-01-05T12:00:00Z" },
      },
      now,
    ),
  ).toEqual({
    texts: ["100k of 100k tokens", "$0.02 of $5.00", "1 of 2 model calls", "1m 30s of 2m 0s"],
    over: false,
  });
});

test("a limit that is reached is over, also by time that is still running", () => {
  expect(budgetOf({ budget: { turns: 2 }, spent: { turns: 2 } }, now).over).toBe(true);
  expect(budgetOf({ budget: { turns: 2, grants: 1 }, spent: { turns: 3 } }, now).over).toBe(false);
  expect(budgetOf({ budget: { seconds: 60 }, spent: { since: "2026-01-05T12:00:00Z" } }, now).over).toBe(true);
});
