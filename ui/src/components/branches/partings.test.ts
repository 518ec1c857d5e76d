import { expect, it } from "vitest";
import type { Branch, Marker, Message } from "@/fold/types";
import type { Row } from "../conversation/rows";
import { partingsOf, place } from "./partings";

const message = (offset: number): Row => ({ kind: "message", key: `m${offset}`, offset, message: {} as Message });
const jump = (offset: number): Row => ({ kind: "jump", key: `j${offset}`, offset, marker: {} as Marker });

const turn = (first: number, title: string) => ({ invocation: title, thread: "main", first, last: first + 5, title });

function branch(id: string, more: Partial<Branch>): Branch {
  return { id, kind: "fork", session: id, fork_at: 0, from: 0, to: 100, title: id, ...more };
}

// Rewound before 13 at 19, then said anew from 20 on; forked before 13 and before 26.
const taken = branch("rew", {
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
  [...place(partingsOf(branches), rows, at)].map(
    ([key, p]) => `${key}${p.below ? " below" : ""}: ${p.ways.map((w, i) => (i === p.active ? `*${w.key}` : w.key))}`,
  );

it("is where something was taken back or forked off, before what comes next", () => {
  const rows = [message(1), message(7), jump(19), message(20)];
  expect(shown([main, taken, fork, older, copy], rows, 26)).toEqual(["j19: rew,*main,older,fork"]);
  expect(shown([main, fork], [message(1), message(7), message(20)], 26)).toEqual(["m20: *main,fork"]);
});

it("knows what was taken back when that is looked at, and goes to the end of it", () => {
  expect(shown([main, taken, fork], [message(1), message(7), message(13)], 19)).toEqual(["m13: *rew,main,fork"]);
  const ways = partingsOf([main, taken, fork])[0]?.ways ?? [];
  expect(ways.map((w) => [w.session, w.at, w.says])).toEqual([
    ["main", 19, "three"],
    ["main", undefined, "three, better"], // its last turn: live
    ["fork", undefined, "f"],
  ]);
});

it("is below the last row where a session ends and a fork goes on, but not before the playhead is there", () => {
  const end = branch("end", { parent: "main", fork_at: 26 });
  const rows = [message(1), message(20)];
  expect(shown([main, end], rows, 26)).toEqual(["m20 below: *main,end"]);
  expect(shown([main, end], [message(1)], 10)).toEqual([]);
});

it("leads from a fork to its parent and to the other forks of that place", () => {
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
  expect(partingsOf([parent, own, other])[0]?.ways[0]?.at).toBe(13); // at the end of what it went on with
});

it("is one place where nothing that is seen is between two", () => {
  const late = branch("late", { parent: "main", fork_at: 12 }); // before the end of the run
  expect(shown([main, fork, late], [message(1), message(20)], 26)).toEqual(["m20: *main,late,fork"]);
});
