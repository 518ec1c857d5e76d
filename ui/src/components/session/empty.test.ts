import { expect, test } from "vitest";
import { emptyText } from "./empty";

test("only a page with a field asks for a task", () => {
  expect(emptyText(true, undefined, true)).toContain("Give the agent a task below");
  for (const refusal of ["closed", "deleted", "reader"] as const)
    expect(emptyText(true, refusal, true)).not.toContain("below");
  expect(emptyText(true, undefined, false)).not.toContain("below");
  expect(emptyText(true, "closed", true)).toContain("was closed");
  expect(emptyText(false, "closed", true)).toContain("At this moment");
});
