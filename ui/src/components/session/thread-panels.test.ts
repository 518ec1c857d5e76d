import type { Message, Snapshot } from "@tapedeck/client";
import { expect, it } from "vitest";
import { joined } from "./thread-panels";

const messages = (...offsets: number[]) => offsets.map((offset) => ({ offset }) as Message);
const parts = (...offsets: number[]) => ({ messages: messages(...offsets), tool_calls: [], runs: [] });

it("puts older items before those of the page, without duplicates", () => {
  const older = parts(1, 5, 9) as unknown as Snapshot;
  const offsets = (p: ReturnType<typeof joined>) => p.messages.map((m) => m.offset);
  expect(offsets(joined(older, { ...parts(5, 9, 12), at: 13 }))).toEqual([1, 5, 9, 12]);
  expect(offsets(joined(older, { ...parts(), at: 6 }))).toEqual([1, 5]); // the playhead is before the others
  expect(offsets(joined(undefined, { ...parts(7), at: 8 }))).toEqual([7]);
});
