import { gzipSync } from "node:zlib";
import type { Envelope } from "@tapedeck/client";
import { Deck } from "@tapedeck/client/player";
import { folded, texts, turns } from "@tapedeck/client/testing";
import { expect, test } from "vitest";
import { type About, deckOptions, readTape, sourceOf } from "./tape";

interface Part {
  kind: string;
  textContent: string;
  gone: boolean;
  remove: () => void;
}

/** A page with the data that the server packs into it. */
function page(events: Envelope[], about: Partial<About> = {}, perPart = 7) {
  const parts: Part[] = [];
  const add = (kind: string, text: string) => {
    const part = { kind, textContent: gzipSync(text).toString("base64"), gone: false, remove: () => {} };
    part.remove = () => {
      part.gone = true;
    };
    parts.push(part);
  };
  for (let i = 0; i < events.length; i += perPart)
    add(
      "events",
      events
        .slice(i, i + perPart)
        .map((e) => `${JSON.stringify(e)}\n`)
        .join(""),
    );
  const session = { id: "s", kind: "session", head: events.length };
  add("about", JSON.stringify({ tapedeck: 1, session, from: 0, to: events.length, index: {}, summary: {}, ...about }));
  const of = (selector: string) => parts.filter((p) => selector.includes(`.${p.kind}"`));
  return {
    parts,
    querySelector: (selector: string) => of(selector)[0] ?? null,
    querySelectorAll: of,
  };
}

const read = (p: unknown, onPart = () => {}) => readTape(p as ParentNode, onPart);
const events = turns(5);

test("packed events are read in order, and their elements are removed", async () => {
  const p = page(events);
  const told: number[] = [];
  const tape = await readTape(p as unknown as ParentNode, (done) => told.push(done));
  expect(tape.events).toEqual(events);
  expect(tape.about.session.id).toBe("s");
  expect(told).toEqual(p.parts.slice(1).map((_, i) => i));
  expect(p.parts.every((x) => x.gone)).toBe(true);
});

test("non-ASCII text and line breaks are preserved", async () => {
  const said: Envelope = { ...events[0]!, data: { title: "Grüße \u2028 \u{1f4fc}\n</script><!--" } };
  expect((await read(page([said]))).events).toEqual([said]);
});

test("a truncated file reports that it is incomplete", async () => {
  const cut = page(events);
  cut.parts.pop();
  await expect(read(cut)).rejects.toThrow("incomplete");
  const hole = page(events);
  hole.parts.splice(1, 1);
  await expect(read(hole)).rejects.toThrow("some events are missing");
  await expect(read(page(events, { tapedeck: 2 }))).rejects.toThrow("version 2");
});

test("a deck plays it without any request", async () => {
  const tape = await read(page(events));
  const deck = new Deck("s", 12, { ...deckOptions(tape), now: () => 0, frame: (f) => queueMicrotask(f) });
  deck.open();
  await expect.poll(() => deck.get().seeking).toBe(false);
  expect(texts(deck.get().view)).toEqual(texts(folded(events, 12)));
  deck.close();
});

test("events are returned in pages, by channel and type", async () => {
  const source = sourceOf(await read(page(events)));
  const all = await source.events("s", { from: 3, limit: 4 });
  expect([all.events.map((e) => e.offset), all.next, all.head]).toEqual([[3, 4, 5, 6], 7, events.length]);
  const some = await source.events("s", { from: 0, limit: 2, channel: "agentState,session", type: "RUN_STARTED" });
  const offsets = events.filter((e) => e.type === "RUN_STARTED").map((e) => e.offset);
  expect(some.events.map((e) => e.offset)).toEqual(offsets.slice(0, 2));
  expect(some.next).toBe(offsets[1]! + 1);
  const rest = await source.events("s", { from: some.next, limit: 100, type: "RUN_STARTED" });
  expect([rest.events.length, rest.next]).toEqual([3, events.length]);
});
