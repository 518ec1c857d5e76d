import { expect, test } from "vitest";
import { emptyText } from "./empty";

test("a closed session does not ask for a task", () => {
  expect(emptyText(true, {})).toContain("Give the agent a task below");
  expect(emptyText(true, { closed: true })).not.toContain("below");
  expect(emptyText(false, { closed: true })).toContain("At this moment");
});
