import { expect, test } from "vitest";
import { onlyThread } from "./part";

const view = {
  threads: [{ name: "main" }, { name: "side" }, { name: "sub_1", parent: "main" }],
  messages: [{ thread: "main" }, { thread: "side" }, { thread: "sub_1" }],
  tool_calls: [],
  runs: [],
};

test("sub-agents are shown only when their thread is selected", () => {
  const threads = (thread?: string) => onlyThread(view, thread).messages.map((m) => m.thread);
  expect(threads()).toEqual(["main", "side"]);
  expect(threads("sub_1")).toEqual(["sub_1"]);
  expect(threads("main")).toEqual(["main"]);
});
