import { expect, it } from "vitest";
import { compareSearch, listSearch, sessionSearch, workflowsSearch } from "./search";

it("keeps only known search parameters", () => {
  expect(sessionSearch({ at: 12, view: "events", panel: "plan", q: 12, evil: "x" })).toEqual({
    at: 12,
    view: "events",
    panel: "plan",
    q: "12",
  });
  expect(sessionSearch({ at: -1, view: "nothing", panel: {}, thread: ["a"] })).toEqual({});
  expect(sessionSearch({ at: 1.5 })).toEqual({});
  expect(sessionSearch({ pane: "a" })).toEqual({ pane: ["a"] });
  expect(sessionSearch({ pane: ["a", "a", {}, "b", "c", "d"] })).toEqual({ pane: ["a", "b", "c"] });
  expect(listSearch({ status: "failed", from: "2026-01-05", q: "" })).toEqual({ status: "failed", from: "2026-01-05" });
  expect(listSearch({ view: "time", t0: 5, t1: 9, agent: "a" })).toEqual({ view: "time", t0: 5, t1: 9, agent: "a" });
  expect(listSearch({ view: "time", t0: 9, t1: 5 })).toEqual({ view: "time" });
  expect(listSearch({ view: "space", t0: 5, t1: 9 })).toEqual({});
  expect(sessionSearch({ view: "workflow", task: "Collect" })).toEqual({ view: "workflow", task: "Collect" });
  expect(workflowsSearch({ name: 7, version: "sha256:1", x: 1 })).toEqual({ name: "7", version: "sha256:1" });
  expect(workflowsSearch({ version: "sha256:1" })).toEqual({});
  expect(compareSearch({ a: "x", b: 7, at_a: 3, at_b: "3" })).toEqual({ a: "x", b: "7", at_a: 3 });
});
