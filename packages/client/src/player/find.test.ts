import { expect, it, vi } from "vitest";
import type { EventsQuery } from "../api.ts";
import { TapedeckError } from "../errors.ts";
import type { Event, SearchHit, SessionEntry } from "../fold/types.ts";
import { asQuery, completeAt, find, highlightPattern, lineage, maxHits } from "./find.ts";

const hit = (offset: number, more: Partial<SearchHit> = {}): SearchHit => ({
  session: "s",
  offset,
  thread: "main",
  kind: "message",
  timestamp: "",
  snippet: "",
  ...more,
});

const nothing = { session: vi.fn(), search: vi.fn(), events: vi.fn() };

it("lists the ancestors of a fork that still exist", async () => {
  const sessions: Record<string, Partial<SessionEntry>> = {
    c: { parent: "b", fork_at: 90 },
    b: { parent: "a", fork_at: 20 },
  };
  const session = async (id: string) => {
    const s = sessions[id];
    if (!s) throw new TapedeckError("gone", "it was deleted", { status: 410 });
    return s as SessionEntry;
  };
  expect(await lineage({ ...nothing, session }, "c")).toEqual([
    { session: "c", below: Number.POSITIVE_INFINITY },
    { session: "b", below: 90 },
  ]);
  sessions.a = {};
  expect((await lineage({ ...nothing, session }, "c"))[2]).toEqual({ session: "a", below: 20 });
  await expect(lineage({ ...nothing, session }, "nobody")).rejects.toThrow("deleted");
});

it("has the hits of all pages by offset, and those of the shared events of a parent", async () => {
  const pages: Record<string, { hits: SearchHit[]; next?: string; behind?: number }> = {
    "s ": { hits: [hit(40), hit(12)], next: "2" },
    "s 2": { hits: [hit(30), hit(0, { kind: "title" }), hit(12), hit(13, { thread: "other" })], behind: 1 },
    "p ": { hits: [hit(5), hit(20)] },
  };
  const search = vi.fn(async (q: { session?: string; cursor?: string }) => pages[`${q.session} ${q.cursor ?? ""}`]!);
  const from = [
    { session: "s", below: Number.POSITIVE_INFINITY },
    { session: "p", below: 10 },
  ];
  const found = await find({ ...nothing, search }, from, "word", "main");
  expect(found.hits.map((h) => h.offset)).toEqual([5, 12, 30, 40]);
  expect(found).toMatchObject({ more: false, behind: true });
  expect(search.mock.calls[0]?.[0]).toMatchObject({ q: "word*", session: "s" });
});

it("stops at the limit of hits", async () => {
  let n = 0;
  const search = async () => ({ hits: Array.from({ length: 100 }, () => hit(n++)), next: "more" });
  const found = await find({ ...nothing, search }, [{ session: "s", below: Number.POSITIVE_INFINITY }], "the");
  expect(found.more).toBe(true);
  expect(found.hits).toHaveLength(maxHits);
});

it("makes the last word a prefix, unless it is quoted", () => {
  expect(["bui", "the bui", 'a "b c', '"b c"', "what?"].map(asQuery)).toEqual([
    "bui*",
    "the bui*",
    'a "b c',
    '"b c"',
    "what?",
  ]);
});

it.each([
  ["bui", "Build, rebuild the BUILDING", ["Bui", "BUI"]],
  ['"the red" -green build', "The  red, green build", ["The  red", "build"]],
  ["src/a.go", "in src/a.go it", ["src/a.go"]],
  ["(", "((", undefined],
])("highlights the matches of %o", (q, text, want) => {
  const words = highlightPattern(q);
  expect(words && [...text.matchAll(words)].map((m) => m[0])).toEqual(want);
});

it("finds the offset as of which a hit is complete", async () => {
  const log = [
    { offset: 0, type: "message.added", invocation: "i" },
    { offset: 1, type: "TEXT_MESSAGE_START", invocation: "i", data: { messageId: "a" } },
    { offset: 2, type: "TOOL_CALL_START", invocation: "i", data: { toolCallId: "c" } },
    { offset: 3, type: "TEXT_MESSAGE_END", invocation: "j", data: { messageId: "b" } },
    { offset: 4, type: "TEXT_MESSAGE_END", invocation: "i", data: { messageId: "a" } },
    { offset: 5, type: "RUN_FINISHED", invocation: "j" },
    { offset: 6, type: "RUN_FINISHED", invocation: "i" },
  ] as Event[];
  const events = async (_: string, q: EventsQuery = {}) => {
    const fits = log.filter((e) => e.offset >= (q.from ?? 0) && (!q.type || q.type.includes(e.type)));
    return { events: fits.slice(0, q.limit), next: 0, head: 7, closed: false };
  };
  expect(await Promise.all([0, 1, 2].map((n) => completeAt({ ...nothing, events }, "s", n)))).toEqual([1, 5, 7]);
});
