import type { Branch, Marker, Message } from "@tapedeck/client";
import { expect, it } from "vitest";
import type { Row } from "../conversation/rows";
import { branchPointsOf, place } from "./branch-points";

const message = (offset: number): Row => ({ kind: "message", key: `m${offset}`, offset, message: {} as Message });
const jump = (offset: number): Row => ({ kind: "jump", key: `j${offset}`, offset, marker: {} as Marker });

const turn = (first: number, title: string) => ({ invocation: title, thread: "main", first, last: first + 5, title });

function branch(id: string, more: Partial<Branch>): Branch {
  return { id, kind: "fork", session: id, fork_at: 0, from: 0, to: 100, title: id, ...more };
}

// Rewound at 19 to before 13, then sent again from 20 on; forked before 13 and before 26.
const reverted = branch("rew", {
  kind: "rewound",
  session: "main",
  parent: "main",
  fork_at: 13,
  to: 19,
  verb: "session.rewound",
  ranges: [{ from: 13, to: 19 }],
  invocations: [turn(13, "three")],
});
const main = branch("main", {
  kind: "main",
  current: true,
  to: 26,
  ranges: [
    { from: 0, to: 13 },
    { from: 20, to: 26 },
  ],
  invocations: [turn(1, "one"), turn(7, "two"), turn(20, "three, better")],
});
const fork = branch("fork", { parent: "main", fork_at: 13, at: "2026-01-05T12:00:02Z", invocations: [turn(14, "f")] });
const older = branch("older", { parent: "main", fork_at: 13, at: "2026-01-05T12:00:01Z" });
const copy = branch("copy", { kind: "copy", parent: "main", fork_at: 7 });

const shown = (branches: Branch[], rows: Row[], at: number) =>
  [...place(branchPointsOf(branches), rows, at)].map(
    ([key, p]) =>
      `${key}${p.below ? " below" : ""}: ${p.alternatives.map((w, i) => (i === p.active ? `*${w.key}` : w.key))}`,
  );

it("puts a branch point before the row after a rewind or a fork", () => {
  const rows = [message(1), message(7), jump(19), message(20)];
  expect(shown([main, reverted, fork, older, copy], rows, 26)).toEqual(["j19: rew,*main,older,fork"]);
  expect(shown([main, fork], [message(1), message(7), message(20)], 26)).toEqual(["m20: *main,fork"]);
});

it("marks the reverted branch as active when it is shown, and leads to its end", () => {
  expect(shown([main, reverted, fork], [message(1), message(7), message(13)], 19)).toEqual(["m13: *rew,main,fork"]);
  const alternatives = branchPointsOf([main, reverted, fork])[0]?.alternatives ?? [];
  expect(alternatives.map((w) => [w.session, w.at, w.nextMessage])).toEqual([
    ["main", 19, "three"],
    ["main", undefined, "three, better"], // its last turn: live
    ["fork", undefined, "f"],
  ]);
});

it("is below the last row for a fork at the end of the session, once the playhead is there", () => {
  const end = branch("end", { parent: "main", fork_at: 26 });
  const rows = [message(1), message(20)];
  expect(shown([main, end], rows, 26)).toEqual(["m20 below: *main,end"]);
  expect(shown([main, end], [message(1)], 10)).toEqual([]);
});

it("leads from a fork to its parent and its sibling forks", () => {
  const parent = branch("main", { kind: "main", invocations: [turn(1, "one"), turn(7, "two"), turn(13, "three")] });
  const own = branch("fork", {
    parent: "main",
    fork_at: 7,
    at: "2026-01-05T12:00:02Z",
    current: true,
    ranges: [{ from: 0, to: 30 }],
    invocations: [turn(1, "one"), turn(8, "mine")],
  });
  const other = branch("other", { parent: "main", fork_at: 7, at: "2026-01-05T12:00:01Z" });
  const elsewhere = branch("elsewhere", { parent: "main", fork_at: 1 });
  expect(shown([parent, own, other, elsewhere], [message(1), message(8)], 14)).toEqual(["m8: main,other,*fork"]);
  expect(branchPointsOf([parent, own, other])[0]?.alternatives[0]?.at).toBe(13); // the end of its next turn
});

it("merges branch points with no row between them", () => {
  const late = branch("late", { parent: "main", fork_at: 12 }); // before the end of the run
  expect(shown([main, fork, late], [message(1), message(20)], 26)).toEqual(["m20: *main,late,fork"]);
});
