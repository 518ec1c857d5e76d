import type { Envelope } from "@tapedeck/client";
import { asQuery, completeAt, find, lineage } from "@tapedeck/client/player";
import { rewound, turns } from "@tapedeck/client/testing";
import { expect, it, test } from "vitest";
import { searchIn, searchItems } from "./search";
import { type About, sourceOf } from "./tape";

const at = (offset: number, type: string, data: Envelope["data"]): Envelope => ({
  offset,
  type,
  channel: "chunks",
  timestamp: "2026-01-05T12:00:00Z",
  invocation: "i",
  data: data ?? {},
});

const log = [
  at(0, "message.added", { message: { id: "u", role: "user", content: "Where is the Über-cache built?" } }),
  at(1, "REASONING_MESSAGE_START", { messageId: "r", role: "reasoning" }),
  at(2, "REASONING_MESSAGE_CONTENT", { messageId: "r", delta: "Look for the buil" }),
  at(3, "REASONING_MESSAGE_CONTENT", { messageId: "r", delta: "der first" }),
  at(4, "REASONING_MESSAGE_END", { messageId: "r" }),
  at(5, "TOOL_CALL_START", { toolCallId: "c", toolCallName: "Grep" }),
  at(6, "TOOL_CALL_ARGS", { toolCallId: "c", delta: '{"path":"src/cache.go"}' }),
  at(7, "TOOL_CALL_END", { toolCallId: "c" }),
  at(8, "TOOL_CALL_RESULT", { toolCallId: "c", messageId: "o", content: "12: func Build()" }),
];

test.each([
  ["build*", [1, 8], "beginnings of words"],
  ["build", [8], "whole words"],
  ["buil*", [0, 1, 8], "a streamed message, at its start"],
  ["uber", [0], "without marks and capitals"],
  ["grep", [5], "the name of a tool"],
  ["src/cache.go", [5], "the arguments of a tool"],
  ["build* -func", [1], "without a word"],
  ['"the builder"', [1], "words that follow each other"],
  ["the first where", [], "all of the words"],
  ["-func", [], "nothing for a query with only excluded words"],
  ["??", [], "no words"],
])("%s finds %j: %s", (q, offsets) => {
  expect(searchIn(searchItems(log), "s", q).map((h) => h.offset)).toEqual(offsets);
});

it("finds the same as a server, also in a fork and in reverted events", async () => {
  const events = turns(3);
  events.push(rewound(events.length, 10));
  const session = { id: "s", kind: "session", head: events.length, parent: "gone", fork_at: 5 };
  const source = sourceOf({ about: { session } as About, events });
  const from = await lineage(source, "s");
  expect(from).toHaveLength(1);
  const found = await find(source, from, "3.0");
  expect(asQuery("3.0")).toBe("3.0*");
  expect(found.hits).toHaveLength(1);
  const begun = found.hits[0]!.offset;
  expect(events[begun]?.type).toBe("TEXT_MESSAGE_START");
  expect(events[(await completeAt(source, "s", begun)) - 1]?.type).toBe("TEXT_MESSAGE_END");
});
