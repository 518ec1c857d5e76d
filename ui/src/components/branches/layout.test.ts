import type { Branch, IndexedInvocation, ReplayIndex } from "@tapedeck/client";
import { expect, it } from "vitest";
import { branchLanes, draw, leavesAt, type Spot } from "./layout";

const none = new Set<number>();

/** n turns of ten events each, starting at an offset. */
function turns(n: number, from: number) {
  return Array.from({ length: n }, (_, i) => ({
    invocation: `i${from + i * 10}`,
    thread: "main",
    first: from + i * 10,
    last: from + i * 10 + 9,
    title: `turn ${i + 1}`,
  }));
}

function branch(id: string, more: Partial<Branch>): Branch {
  return { id, kind: "fork", session: id, fork_at: 0, from: 0, to: 100, ...more };
}

const words = (s: Spot) =>
  s.kind === "turn" ? `${s.turn.column}` : s.kind === "folded" ? `[${s.turns}]` : `(${s.events})`;

it("places forks at their branch point, and reverted turns at their old columns", () => {
  const lanes = branchLanes([
    branch("main", { kind: "main", current: true, invocations: turns(3, 1) }),
    branch("rew", { kind: "rewound", session: "main", parent: "main", fork_at: 21, invocations: turns(2, 21) }),
    branch("fork", { parent: "main", fork_at: 11, invocations: turns(1, 12) }),
    branch("fork of reverted turns", { parent: "rew", fork_at: 31, invocations: turns(1, 32) }),
    branch("empty", { parent: "fork", fork_at: 50, from: 50, to: 52 }),
  ]);
  expect(lanes.map((l) => [l.branch.id, l.parent, l.start, l.depth])).toEqual([
    ["main", -1, 0, 0],
    ["rew", 0, 2, 1],
    ["fork of reverted turns", 1, 3, 2],
    ["fork", 0, 1, 1],
    ["empty", 3, 2, 2],
  ]);
  const d = draw(lanes, none);
  expect(d.spots.map((s) => s.map(words).join(" "))).toEqual(["0 1 2", "2 3", "3", "1", "(2)"]);
  expect(d.spots[1]?.[0]?.x).toBe(d.spots[0]?.[2]?.x); // the same turn, before the rewind
});

it("does not repeat the turns that a fork inherited", () => {
  const lanes = branchLanes([
    branch("parent", { kind: "main", invocations: turns(3, 1) }),
    branch("s", { parent: "parent", fork_at: 21, current: true, invocations: [...turns(2, 1), ...turns(1, 22)] }),
  ]);
  expect(lanes[1]?.turns.map((t) => t.first)).toEqual([22]);
  expect(lanes[1]?.more).toBe(0);
});

it("folds long stretches without branch points, and unfolds them", () => {
  const all = turns(1000, 1);
  const index = { invocations: all.map((t) => ({ ...t, started_at: "" }) as IndexedInvocation) } as ReplayIndex;
  const main = branch("main", {
    kind: "main",
    current: true,
    ranges: [{ from: 0, to: 10_001 }],
    invocations: all.slice(0, 100),
    invocations_left_out: 900,
  });
  const fork = branch("fork", { parent: "main", fork_at: 5001, invocations: turns(1, 5002) });
  const lanes = branchLanes([main, fork], index);
  const d = draw(lanes, none, 7005);
  expect(d.spots[0]?.map(words)).toEqual(["0", "[498]", "499", "500", "[199]", "700", "[298]", "999"]);
  expect(d.width).toBeLessThan(700);
  expect(draw(lanes, new Set([701]), 7005).spots[0]).toHaveLength(7 + 298);
  // without an index it has the first hundred turns, and the number of the others
  expect(draw(branchLanes([main, fork]), none).spots[0]?.map(words)).toEqual(["0", "[98]", "99", "[900]"]);
});

it("stays compact with two hundred forks of a long session", () => {
  const main = branch("main", {
    kind: "main",
    current: true,
    ranges: [{ from: 0, to: 1e6 }],
    invocations: turns(100, 1),
  });
  const forks = Array.from({ length: 200 }, (_, i) =>
    branch(`f${i}`, { parent: "main", fork_at: 1 + (i % 90) * 10, invocations: turns(1, 2 + (i % 90) * 10) }),
  );
  const d = draw(branchLanes([main, ...forks]), none);
  expect(d.lanes).toHaveLength(201);
  expect(d.spots.flat().length).toBeLessThan(400);
});

it("spreads a small tree over the area, and keeps a large one as narrow as it is", () => {
  const few = branchLanes([branch("main", { kind: "main", current: true, invocations: turns(4, 1) })]);
  const spread = draw(few, none, undefined, { width: 800, height: 600 });
  expect(spread.columnWidth).toBe(185);
  expect(spread.rowHeight).toBe(110);
  expect(spread.width).toBeLessThanOrEqual(800);
  const narrow = draw(few, none, undefined, { width: 300, height: 50 });
  expect(narrow.columnWidth).toBe(60);
  expect(narrow.width).toBeLessThanOrEqual(300);
  expect(narrow.rowHeight).toBe(60);
  const many = branchLanes([branch("main", { kind: "main", current: true, invocations: turns(40, 1) })]);
  expect(draw(many, none, undefined, { width: 300, height: 600 }).columnWidth).toBe(30);
});

it("says in which turn a branch leaves its parent", () => {
  const lanes = branchLanes([
    branch("main", { kind: "main", current: true, invocations: turns(3, 1) }),
    branch("in", { parent: "main", fork_at: 15 }),
    branch("after", { parent: "main", fork_at: 21 }),
    branch("before", { parent: "main", fork_at: 1 }),
  ]);
  const leaves = Object.fromEntries(lanes.map((l) => [l.branch.id, leavesAt(l, lanes)]));
  expect(leaves).toEqual({
    main: undefined,
    in: { turn: 2, within: true },
    after: { turn: 2, within: false },
    before: { turn: 0, within: false },
  });
});
