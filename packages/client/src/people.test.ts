import { describe, expect, it } from "vitest";
import { initials, People, type PresenceEvent, userOf } from "./people.ts";

const event = (what: string, user: string, cursor?: unknown, more = {}): PresenceEvent => ({
  type: `presence.${what}`,
  timestamp: "2026-01-05T12:00:00.000Z",
  data: { user, ...(cursor === undefined ? {} : { cursor }), ...more } as PresenceEvent["data"],
});

function fold(...events: PresenceEvent[]) {
  const people = new People();
  for (const e of events) people.apply(e);
  return people.list();
}

describe("the roster of a session", () => {
  it("has the users who joined and did not leave, with their last position", () => {
    expect(
      fold(
        event("joined", "ada", { name: "Ada L", at: 3 }, { joinedAt: "2026-01-05T11:00:00Z" }),
        event("joined", "bob"),
        event("moved", "ada", { name: "Ada L", state: "typing" }),
        event("joined", "cy"),
        event("left", "bob"),
      ),
    ).toEqual([
      { user: "ada", name: "Ada L", state: "typing", since: Date.parse("2026-01-05T11:00:00Z") },
      { user: "cy", name: "cy", since: Date.parse("2026-01-05T12:00:00Z") },
    ]);
  });

  it("includes a user whose join is missing, and keeps the position if an event has none", () => {
    expect(fold(event("moved", "ada", { at: 7 }), event("moved", "ada"))).toMatchObject([{ user: "ada", at: 7 }]);
  });

  it("ignores malformed cursors of other clients", () => {
    const odd = [null, 7, "x", [], { name: 1, at: -1, state: "on fire" }, { name: " ", at: 1.5 }];
    for (const cursor of odd) {
      const [p] = fold(event("joined", "ada", cursor));
      expect(p).toEqual({ user: "ada", name: "ada", since: expect.any(Number) });
    }
    expect(fold(event("joined", ""), { type: "presence.joined", timestamp: "" }, event("other", "x"))).toEqual([]);
    expect(fold(event("joined", "a", { name: "x".repeat(500) }))[0]?.name).toHaveLength(60);
    expect(fold({ ...event("joined", "a"), timestamp: "never" })).toEqual([{ user: "a", name: "a" }]);
  });
});

it("makes a valid user id from a name, always the same", () => {
  expect(["ada", "Ada Lovelace", " Žofie!", "--x--", "a@b.example", "李小龍", "🙂"].map(userOf)).toEqual([
    "ada",
    "Ada-Lovelace",
    "Zofie",
    "x",
    "a@b.example",
    "u_674e_5c0f_9f8d",
    "u_1f642",
  ]);
  for (const name of ["ada", "Ada Lovelace", "ß€", "é".repeat(200), "\u202e.:", "_"])
    expect(userOf(name)).toMatch(/^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,127}$/);
});

it("makes initials from a name", () => {
  expect(["Ada Lovelace", "ada", "a.b.c", "", "🙂 x", "李"].map(initials)).toEqual(["AL", "A", "AC", "?", "🙂X", "李"]);
});
