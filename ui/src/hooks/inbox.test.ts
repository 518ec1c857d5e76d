import type { InboxQuestion } from "@tapedeck/client";
import { expect, it } from "vitest";
import { keyOf, merged } from "./inbox";

const question = (session: string, offset: number): InboxQuestion => ({
  session: { id: session },
  question: { id: "p", offset, thread: "main", status: "open", started_at: "2026-01-05T12:00:00Z", options: [] },
});

it("keeps the place of what is shown, and puts new questions first", () => {
  const [a, b, c] = [question("a", 1), question("b", 1), question("a", 7)];
  const shown = merged([], [b, a]);
  expect(shown).toEqual([b, a]);
  expect(merged(shown, [c, a])).toEqual([c, b, a]); // b no longer waits, and stays
  expect(merged(shown, [a, b])).toBe(shown);
  expect(new Set([a, b, c].map(keyOf)).size).toBe(3);
});
