import type { SessionEntry } from "@tapedeck/client";
import { expect, it } from "vitest";
import { asTree, join } from "./sessions";

const s = (id: string, more: Partial<SessionEntry> = {}): SessionEntry => ({
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

it("puts new sessions before the loaded ones, whatever their times, and drops deleted ones", () => {
  const entry = (id: string, day: number) =>
    ({ id, kind: "session", created_at: `2026-01-0${day}`, updated_at: "", head: 1 }) as SessionEntry;
  const loaded = [entry("import", 1), entry("b", 5), entry("gone", 4), entry("c", 4), entry("d", 3)];
  const fresh = { sessions: [entry("new", 6), entry("import", 1), entry("b", 5), entry("c", 4)] };
  expect(join(fresh, loaded).map((s) => s.id)).toEqual(["new", "import", "b", "c", "d"]);
  expect(join({ sessions: [entry("new", 6)] }, loaded).map((s) => s.id)).toEqual(["new", ...loaded.map((s) => s.id)]);
  expect(join(undefined, loaded)).toBe(loaded);
});
