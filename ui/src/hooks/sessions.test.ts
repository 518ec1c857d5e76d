import type { SearchHit } from "@tapedeck/client";
import { expect, it } from "vitest";
import { asRows, asTree, hitsBySession, join, type Listed } from "./sessions";

const s = (id: string, more: Partial<Listed> = {}): Listed => ({
  id,
  kind: "session",
  created_at: "2026-01-05T12:00:00Z",
  updated_at: "2026-01-05T12:00:00Z",
  head: 1,
  ...more,
});

it("puts forks under their parents, and each day above its first session", () => {
  const rows = asTree(
    [
      s("f2", { parent: "f1" }),
      s("copy", { parent: "a", copy: true }),
      s("f1", { parent: "a" }),
      s("a"),
      s("lost", { parent: "gone" }),
      s("old", { created_at: "2026-01-04T12:00:00Z" }),
    ],
    (at) => at.slice(0, 10),
  );
  expect(rows.map((r) => `${r.depth} ${r.session.id}${r.heading ? ` ${r.heading}` : ""}`)).toEqual([
    "0 copy 2026-01-05",
    "0 a",
    "1 f1",
    "2 f2",
    "0 lost",
    "0 old 2026-01-04",
  ]);
});

const ids = (all: { id: string }[]) => all.map((x) => x.id).join(" ");

it("puts the fresh page before what was loaded after it, and drops what was deleted", () => {
  const loaded = ["import", "b", "deleted", "c", "d", "e"].map((id) => s(id));
  const page = (...all: string[]) => ({ sessions: all.map((id) => s(id)), next: "more" });
  expect(ids(join(page("new", "import", "b", "c"), loaded))).toBe("new import b c d e");
  expect(ids(join(page("new"), loaded))).toBe(`new ${ids(loaded)}`);
  expect(ids(join({ sessions: [s("new")] }, loaded))).toBe("new");
  expect(ids(join(undefined, [...loaded, s("b")]))).toBe(ids(loaded));
});

it("does not lose or repeat sessions when one moves to the beginning", () => {
  const loaded = ["a", "b", "c", "d", "e"].map((id) => s(id));
  expect(ids(join({ sessions: [s("d"), s("a"), s("b")], next: "more" }, loaded))).toBe("d a b c e");
});

it("heads what waits, what runs, and the days, and gives each session its hits", () => {
  const hit = { session: "old", kind: "message", offset: 1 } as SearchHit;
  const rows = asRows(
    [s("w", { status: "waiting" }), s("r", { status: "running" }), s("r2", { status: "running" }), s("old")],
    { sort: "activity", order: "desc" },
    hitsBySession([hit, { ...hit, kind: "title" }]),
    () => "a day",
  );
  expect(rows.map((r) => r.heading)).toEqual(["Waiting for you", "Running", undefined, "a day"]);
  expect(rows.map((r) => r.hits?.length)).toEqual([undefined, undefined, undefined, 1]);
  const flat = asRows([s("f", { parent: "a" }), s("a")], { sort: "cost", order: "desc" }, new Map(), () => "a day");
  expect(flat.map((r) => [r.session.id, r.heading])).toEqual([
    ["f", undefined],
    ["a", undefined],
  ]);
});
