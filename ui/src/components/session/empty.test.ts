import { expect, test } from "vitest";
import { emptyText } from "./empty";

test("nobody is asked to give a closed session a task", () => {
  expect(emptyText(true, {})).toContain("Give the agent a task below");
  expect(emptyText(true, { closed: true })).not.toContain("below");
  expect(emptyText(false, { closed: true })).toContain("At this moment");
});
