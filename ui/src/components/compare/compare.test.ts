import type { DiffItem, DiffTurn } from "@tapedeck/client";
import { afterEach, expect, it, vi } from "vitest";
import { pairsOf } from "./pairs";
import { stateDiff } from "./state-diff";
import { totalsOf } from "./totals";
import { wordDiff } from "./words";

afterEach(() => vi.unstubAllGlobals());

const marked = (a: string, b: string) => {
  const d = wordDiff(a, b);
  const show = (p: typeof d.a) => p.map((x) => (x.same ? x.text : `[${x.text}]`)).join("");
  return [show(d.a), show(d.b)];
};

it("marks the words that are not in both", () => {
  expect(marked("Use a global lock.", "Use a queue per session.")).toEqual([
    "Use a [global lock].",
    "Use a [queue per session].",
  ]);
  expect(marked("Why is the build red?", "Stop it now, the tests are slow.")).toEqual([
    "[Why is the build red?]",
    "[Stop it now, the tests are slow.]",
  ]);
  expect(marked("same", "same")).toEqual(["same", "same"]);
  expect(marked("", "new")).toEqual(["", "[new]"]);
  expect(marked("a x b y c", "a b c")).toEqual(["a [x ]b[ y] c", "a b c"]);
});

it("loses no part of a text, even of a long one", () => {
  const a = Array.from({ length: 3000 }, (_, i) => `a${i}`).join(" ");
  const b = `${a.replaceAll("a1", "b1")} end`;
  const d = wordDiff(a, b);
  expect(d.a.map((p) => p.text).join("")).toBe(a);
  expect(d.b.map((p) => p.text).join("")).toBe(b);
});

it("finds the differences between two states", () => {
  const a = { lock: { owner: "x" }, n: 1, list: [1, 2], same: { deep: [true] } };
  const b = { queue: { len: 2 }, n: 2, list: [1, 3, 4], same: { deep: [true] }, "a b": null };
  expect(stateDiff(a, b).changes.map((c) => `${c.op} ${c.path}`)).toEqual([
    "removed lock",
    "changed n",
    "changed list[1]",
    "added list[2]",
    "added queue",
    'added "a b"',
  ]);
  expect(stateDiff(undefined, undefined).changes).toEqual([]);
  expect(stateDiff(undefined, { a: 1 }).changes).toEqual([{ op: "added", path: "", b: { a: 1 } }]);
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`k${i}`, i]));
  expect(stateDiff({}, many)).toMatchObject({ more: true, changes: { length: 200 } });
});

const item = (offset: number, text: string): DiffItem => ({
  offset,
  kind: "message",
  name: "assistant",
  text,
  status: "complete",
});
const side = (...messages: DiffItem[]) => ({ offset: 0, thread: "main", messages, tools: [] });

it("pairs changed items, and leaves the other side empty for added or removed ones", () => {
  const turn: DiffTurn = {
    turn: 1,
    same: false,
    a: side(item(1, "same"), item(2, "lost"), item(3, "old")),
    b: side(item(11, "same"), item(12, "new"), item(13, "extra")),
    changes: [
      { op: "removed", kind: "message", name: "assistant", a_offset: 2 },
      { op: "changed", kind: "message", name: "assistant", a_offset: 3, b_offset: 12 },
      { op: "added", kind: "message", name: "assistant", b_offset: 13 },
    ],
  };
  const words = (t: DiffTurn) => pairsOf(t).map((p) => `${p.a?.text ?? "-"}/${p.b?.text ?? "-"} ${p.change?.op ?? ""}`);
  expect(words(turn)).toEqual(["same/same ", "lost/- removed", "old/new changed", "-/extra added"]);
  expect(words({ ...turn, b: null, changes: [] })).toEqual(["same/- ", "lost/- ", "old/- "]);
});

it("adds to the totals of a fork those of its parent before the fork", async () => {
  const summary = (over: object) => ({ tokens: { total: 0 }, tools: [], duration_ms: 0, inherited_events: 0, ...over });
  const answers: Record<string, object> = {
    "/api/v1/sessions/f/summary?at=30": summary({
      status: "failed",
      inherited_events: 20,
      tokens: { total: 5 },
      tools: [{ name: "Bash", count: 2, failed: 1, duration_ms: 9 }],
    }),
    "/api/v1/sessions/f": { id: "f", parent: "p", fork_at: 20 },
    "/api/v1/sessions/p/summary?at=20": summary({
      status: "complete",
      tokens: { total: 7 },
      cost_usd: 0.5,
      duration_ms: 100,
      tools: [{ name: "Bash", count: 1, failed: 0, duration_ms: 9 }],
    }),
  };
  vi.stubGlobal("fetch", async (url: string) => {
    const { pathname, search } = new URL(url);
    const answer = answers[pathname + search];
    if (!answer) throw new Error(url);
    return Response.json(answer);
  });
  expect(await totalsOf("f", 30)).toEqual({
    status: "failed",
    tools: 3,
    failed: 1,
    tokens: 12,
    cost: 0.5,
    durationMs: 100,
  });
});
