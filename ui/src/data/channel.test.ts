import { describe, expect, it } from "vitest";
import type { Event } from "../fold/types";
import type { EventsQuery } from "./api";
import { ChannelLog } from "./channel";
import { rewound, time } from "./fake";

const other = (offset: number): Event => ({ offset, type: "acme.note", channel: "chunks", timestamp: time(offset) });
const output = (offset: number, size = 10): Event => ({
  offset,
  type: "terminal.output",
  channel: "terminal",
  timestamp: time(offset),
  data: { terminal: "t", data: "x".repeat(size) },
});

/** A server of these events, some of which are at hand. */
function world(events: Event[], hand: (offset: number) => boolean = () => false, looks = 20) {
  const asked: string[] = [];
  const source = {
    event: (offset: number) => (hand(offset) ? events[offset] : undefined),
    // Like the server it looks at so many events for a page.
    fetch: async ({ from = 0, reverse }: EventsQuery) => {
      asked.push(`${reverse ? "back " : ""}${from}`);
      const range = reverse ? [Math.max(0, from - looks), from] : [from, Math.min(events.length, from + looks)];
      const page = events.slice(...range).filter((e) => e.channel !== "chunks");
      const next = reverse ? range[0]! : range[1]!;
      return { events: reverse ? page.reverse() : page, next, head: events.length, closed: false };
    },
  };
  return {
    asked,
    source,
    log: (most?: number, lookBack?: number) => new ChannelLog("terminal", source, { most, lookBack }),
  };
}

const offsets = (log: ChannelLog) => log.events.map((e) => e.offset);
const mixed = (n: number) => Array.from({ length: n }, (_, i) => (i % 5 === 0 ? output(i) : other(i)));

describe("the events of a channel", () => {
  it("come from the server as far as they are not at hand, without a gap", async () => {
    const w = world(mixed(60), (offset) => offset >= 40);
    const log = w.log();
    await log.reach(60);
    expect(offsets(log)).toEqual([0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55]);
    expect(w.asked).toEqual(["back 40", "back 20"]);
  });

  it("are read on as they come, without asking", async () => {
    const events = mixed(20);
    const w = world(events, () => true);
    const log = w.log();
    await log.reach(20);
    events.push(output(20), other(21), output(22));
    expect(log.ready(23)).toBe(true);
    expect(offsets(log).slice(-2)).toEqual([20, 22]);
    expect(w.asked).toEqual([]);
  });

  it("are asked for forward when the playhead has moved on a little", async () => {
    const w = world(mixed(60));
    const log = w.log();
    await log.reach(20);
    expect(log.ready(30)).toBe(false);
    await log.reach(30);
    expect(w.asked).toEqual(["back 20", "20"]);
    expect(log.to).toBe(40);
    expect(offsets(log)).toEqual([0, 5, 10, 15, 20, 25, 30, 35]);
  });

  it("are only the newest ones before an offset, and others further back", async () => {
    const w = world(Array.from({ length: 400 }, (_, i) => output(i, 800)));
    const log = w.log(50_000);
    await log.reach(400);
    expect(log.from).toBe(340); // 60 of 1000 bytes each, by pages of 20
    expect(log.ready(390)).toBe(true);
    expect(log.ready(345)).toBe(false); // next to nothing is left before it
    await log.reach(345);
    expect([log.from, log.to]).toEqual([285, 345]);
  });

  it("are not looked for without end where there are none", async () => {
    const w = world(Array.from({ length: 400 }, (_, i) => other(i)));
    const log = w.log(undefined, 50);
    await log.reach(400);
    expect(w.asked).toEqual(["back 400", "back 380", "back 360"]);
    expect([log.from, log.ready(400), log.ready(390)]).toEqual([340, true, true]);
  });

  it("do not grow without end", async () => {
    const events = [output(0, 800)];
    const w = world(events, () => true);
    const log = w.log(50_000);
    await log.reach(1);
    for (let i = 1; i < 1000; i++) {
      events.push(output(i, 800));
      expect(log.ready(i + 1)).toBe(true);
    }
    expect(log.events.length).toBeLessThan(101);
    expect(log.from).toBe(log.events[0]?.offset);
  });

  it("bring what takes them back", async () => {
    const events = [output(0), output(1), { ...rewound(2, 1), channel: "session" }, output(3)];
    const log = world(events).log();
    await log.reach(4);
    expect(log.events.filter((e) => log.timeline.has(e.offset, "main", 4)).map((e) => e.offset)).toEqual([0, 3]);
  });

  it("follow the last of several offsets that are asked for at once", async () => {
    const log = world(mixed(60)).log();
    await Promise.all([log.reach(10), log.reach(50), log.reach(30)]);
    expect(log.ready(30)).toBe(true);
  });

  it("can be asked for again when the server has failed", async () => {
    const w = world(mixed(10));
    const { fetch } = w.source;
    w.source.fetch = async () => {
      throw new Error("gone");
    };
    const log = w.log();
    await expect(log.reach(10)).rejects.toThrow("gone");
    w.source.fetch = fetch;
    await log.reach(10);
    expect(offsets(log)).toEqual([0, 5]);
  });
});
