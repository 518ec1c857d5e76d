import { describe, expect, it } from "vitest";
import type { EventsQuery } from "../api.ts";
import type { Event } from "../fold/types.ts";
import { ChannelLog } from "./channel.ts";
import { rewound, time } from "./fake.ts";

const other = (offset: number): Event => ({ offset, type: "acme.note", channel: "chunks", timestamp: time(offset) });
const output = (offset: number, size = 10): Event => ({
  offset,
  type: "terminal.output",
  channel: "terminal",
  timestamp: time(offset),
  data: { terminal: "t", data: "x".repeat(size) },
});

/** A fake server with these events, some of which are in memory. */
function world(events: Event[], inMemory: (offset: number) => boolean = () => false, searched = 20) {
  const asked: string[] = [];
  const source = {
    event: (offset: number) => (inMemory(offset) ? events[offset] : undefined),
    // Like the real server, it searches a fixed number of events for each page.
    fetch: async ({ from = 0, reverse }: EventsQuery) => {
      asked.push(`${reverse ? "back " : ""}${from}`);
      const range = reverse ? [Math.max(0, from - searched), from] : [from, Math.min(events.length, from + searched)];
      const page = events.slice(...range).filter((e) => e.channel !== "chunks");
      const next = reverse ? range[0]! : range[1]!;
      return { events: reverse ? page.reverse() : page, next, head: events.length, closed: false };
    },
  };
  return {
    asked,
    source,
    log: (maxBytes?: number, lookBack?: number) => new ChannelLog("terminal", source, { maxBytes, lookBack }),
  };
}

const offsets = (log: ChannelLog) => log.events.map((e) => e.offset);
const mixed = (n: number) => Array.from({ length: n }, (_, i) => (i % 5 === 0 ? output(i) : other(i)));

describe("the events of a channel", () => {
  it("are fetched from the server if they are not in memory, without a gap", async () => {
    const w = world(mixed(60), (offset) => offset >= 40);
    const log = w.log();
    await log.load(60);
    expect(offsets(log)).toEqual([0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55]);
    expect(w.asked).toEqual(["back 40", "back 20"]);
  });

  it("are taken from memory as they arrive, without a request", async () => {
    const events = mixed(20);
    const w = world(events, () => true);
    const log = w.log();
    await log.load(20);
    events.push(output(20), other(21), output(22));
    expect(log.ready(23)).toBe(true);
    expect(offsets(log).slice(-2)).toEqual([20, 22]);
    expect(w.asked).toEqual([]);
  });

  it("are loaded forwards when the playhead has moved a little", async () => {
    const w = world(mixed(60));
    const log = w.log();
    await log.load(20);
    expect(log.ready(30)).toBe(false);
    await log.load(30);
    expect(w.asked).toEqual(["back 20", "20"]);
    expect(log.to).toBe(40);
    expect(offsets(log)).toEqual([0, 5, 10, 15, 20, 25, 30, 35]);
  });

  it("are only the newest before an offset; an earlier offset loads others", async () => {
    const w = world(Array.from({ length: 400 }, (_, i) => output(i, 800)));
    const log = w.log(50_000);
    await log.load(400);
    expect(log.from).toBe(340); // 60 events of 1000 bytes each, in pages of 20
    expect(log.ready(390)).toBe(true);
    expect(log.ready(345)).toBe(false); // too few of the loaded events are before it
    await log.load(345);
    expect([log.from, log.to]).toEqual([285, 345]);
  });

  it("are searched only lookBack events far if there are none", async () => {
    const w = world(Array.from({ length: 400 }, (_, i) => other(i)));
    const log = w.log(undefined, 50);
    await log.load(400);
    expect(w.asked).toEqual(["back 400", "back 380", "back 360"]);
    expect([log.from, log.ready(400), log.ready(390)]).toEqual([340, true, true]);
  });

  it("stay within twice maxBytes", async () => {
    const events = [output(0, 800)];
    const w = world(events, () => true);
    const log = w.log(50_000);
    await log.load(1);
    for (let i = 1; i < 1000; i++) {
      events.push(output(i, 800));
      expect(log.ready(i + 1)).toBe(true);
    }
    expect(log.events.length).toBeLessThan(101);
    expect(log.from).toBe(log.events[0]?.offset);
  });

  it("include the jumps that revert them", async () => {
    const events = [output(0), output(1), { ...rewound(2, 1), channel: "session" }, output(3)];
    const log = world(events).log();
    await log.load(4);
    expect(log.events.filter((e) => log.timeline.has(e.offset, "main", 4)).map((e) => e.offset)).toEqual([0, 3]);
  });

  it("are loaded for the last of several offsets that are requested at once", async () => {
    const log = world(mixed(60)).log();
    await Promise.all([log.load(10), log.load(50), log.load(30)]);
    expect(log.ready(30)).toBe(true);
  });

  it("can be requested again after the server has failed", async () => {
    const w = world(mixed(10));
    const { fetch } = w.source;
    w.source.fetch = async () => {
      throw new Error("gone");
    };
    const log = w.log();
    await expect(log.load(10)).rejects.toThrow("gone");
    w.source.fetch = fetch;
    await log.load(10);
    expect(offsets(log)).toEqual([0, 5]);
  });
});
