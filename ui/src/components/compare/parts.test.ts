import type { Diff, DiffItem, DiffTurn } from "@tapedeck/client";
import { expect, it } from "vitest";
import { stopsOf } from "./lockstep";
import { contentsOf, partingOf, partsOf, questionOf, sameUntil, stopsIn } from "./parts";

const message = (offset: number, name: string, text: string): DiffItem => ({
  offset,
  kind: "message",
  name,
  text,
  status: "complete",
});
const tool = (offset: number, name: string): DiffItem => ({ offset, kind: "tool", name, status: "complete" });

const asked = message(3, "user", "make it\ngreen");
const looked = tool(5, "Bash");
const said = message(9, "assistant", "a lock");

function side(...items: DiffItem[]) {
  return {
    offset: items[0]?.offset ?? 0,
    thread: "main",
    messages: items.filter((i) => i.kind === "message"),
    tools: items.filter((i) => i.kind === "tool"),
  };
}

/** A fork that leaves in the middle of the third turn: it lacks the last message. */
const midTurn: DiffTurn = {
  turn: 3,
  same: false,
  a: side(asked, looked, said),
  b: side(asked, looked),
  changes: [{ op: "removed", kind: "message", name: "assistant", a_offset: 9 }],
};

function diff(turns: DiffTurn[], common = 0): Diff {
  return {
    a: { id: "a", at: 20, turns: 4 },
    b: { id: "b", at: 15, turns: 4 },
    shared_offset: 0,
    common_turns: common,
    same: turns.length === 0,
    turns,
  };
}

const whole = (turn: number, a: DiffItem | undefined, b: DiffItem | undefined): DiffTurn => ({
  turn,
  same: false,
  a: a ? side(a) : null,
  b: b ? side(b) : null,
  changes: a && b && [{ op: "changed", kind: "message", name: "user", a_offset: a.offset, b_offset: b.offset }],
});

it("folds the items that are the same, also in a turn that differs later", () => {
  const parts = partsOf(midTurn);
  expect(parts.map((p) => p.kind)).toEqual(["same", "differs"]);
  expect(parts[0]?.kind === "same" && contentsOf(parts[0].pairs)).toBe("1 message, 1 tool call");
  expect(questionOf(midTurn)).toBe("make it green");
  expect(stopsIn(midTurn)).toBe(1);
  expect(stopsIn(whole(2, undefined, asked))).toBe(1);
});

it("says until where both sides are the same", () => {
  const other = message(3, "user", "something else");
  expect(sameUntil(diff([]))).toBe("Both are identical.");
  expect(sameUntil(diff([midTurn], 2))).toBe("The same until turn 3, after the call of Bash.");
  expect(sameUntil(diff([whole(1, asked, other)]))).toBe("They differ from the first turn on.");
  expect(sameUntil(diff([whole(3, asked, other)], 2))).toBe("The same until turn 3.");
  expect(sameUntil(diff([whole(3, asked, undefined)], 2))).toBe("The same until the end of B. Only A goes on.");
  expect(sameUntil(diff([whole(3, undefined, asked)], 2))).toBe("The same until the end of A. Only B goes on.");
});

it("begins playback where the sides differ, not at the turn that they have in common", () => {
  const d = diff([midTurn, whole(4, message(12, "user", "thanks"), message(8, "user", "a queue"))], 2);
  expect(partingOf(d, "a")).toBe(9);
  expect(partingOf(d, "b")).toBeUndefined();
  expect(stopsOf(d, "a")).toEqual([9, 12, 20]);
  expect(stopsOf(d, "b")).toEqual([8, 8, 15]);
});
