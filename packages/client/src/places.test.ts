import { afterEach, beforeEach, expect, test, vi } from "vitest";

const origin = "http://deck.example";
let held: Set<string>;
let protocol: string;

/** A channel whose messages arrive at once, each in the page that made the channel. */
class Channel {
  static all: Channel[] = [];
  private readonly page = globalThis.document;
  private listeners = new Set<(m: { data: unknown }) => void>();

  constructor() {
    Channel.all.push(this);
  }

  addEventListener(_: string, f: (m: { data: unknown }) => void): void {
    this.listeners.add(f);
  }

  removeEventListener(_: string, f: (m: { data: unknown }) => void): void {
    this.listeners.delete(f);
  }

  postMessage(data: unknown): void {
    for (const other of Channel.all.filter((c) => c !== this)) {
      vi.stubGlobal("document", other.page);
      for (const f of other.listeners) f({ data });
    }
  }
}

/** The module as another page of the browser has it. */
async function page(visibilityState = "visible") {
  vi.resetModules();
  const places = await import("./places.ts");
  const asked = vi.fn();
  return {
    asked,
    ask: (kind: "follow" | "answer" = "follow") => {
      vi.stubGlobal("document", { visibilityState });
      return places.place(`${origin}/api`, kind, asked);
    },
  };
}

beforeEach(() => {
  held = new Set();
  protocol = "http/1.1";
  vi.stubGlobal("document", { visibilityState: "visible" });
  Channel.all = [];
  vi.stubGlobal("BroadcastChannel", Channel);
  vi.stubGlobal("location", { href: `${origin}/` });
  vi.stubGlobal("performance", {
    getEntriesByType: (type: string) =>
      type === "resource"
        ? [
            { name: `${origin}/script.js`, nextHopProtocol: protocol },
            { name: "http://elsewhere.example/x", nextHopProtocol: "h2" },
            { name: `${origin}.evil/x`, nextHopProtocol: "h2" },
          ]
        : [],
  });
  // What the browser does: a lock is held until the promise of the callback resolves.
  const request = async (name: string, _: object, held_: (l: object | null) => Promise<void> | undefined) => {
    if (held.has(name)) return held_(null);
    held.add(name);
    await held_({ name });
    held.delete(name);
  };
  vi.stubGlobal("navigator", { locks: { request } });
});

afterEach(() => vi.unstubAllGlobals());

test("there are two places of each kind, for all pages", async () => {
  const [one, two] = [await page(), await page()];
  const first = await one.ask();
  expect(first).toBeDefined();
  expect(await two.ask()).toBeDefined();
  expect(await one.ask()).toBeUndefined();
  expect(await two.ask()).toBeUndefined();
  expect(await two.ask("answer")).toBeDefined();
  first?.leave();
  await new Promise((r) => setImmediate(r));
  expect(await two.ask()).toBeDefined();
});

test.each(["h2", "h3"])("over %s each stream has a place", async (p) => {
  protocol = p;
  const one = await page();
  for (let n = 0; n < 5; n++) expect(await one.ask()).toBeDefined();
  expect(held.size).toBe(0);
});

test("as long as the protocol is not known, there are two places", async () => {
  protocol = "";
  const one = await page();
  expect([await one.ask(), await one.ask(), await one.ask()].map((p) => p !== undefined)).toEqual([true, true, false]);
});

test("outside of pages, without locks and where the browser refuses them, each stream has a place", async () => {
  const one = await page();
  vi.stubGlobal("navigator", { locks: { request: () => Promise.reject(new DOMException("no", "SecurityError")) } });
  for (let n = 0; n < 3; n++) expect(await one.ask()).toBeDefined();
  vi.stubGlobal("navigator", {});
  for (let n = 0; n < 3; n++) expect(await one.ask()).toBeDefined();
  const { place } = await import("./places.ts");
  vi.stubGlobal("document", undefined);
  for (let n = 0; n < 3; n++) expect(await place(origin, "follow", () => undefined)).toBeDefined();
});

test("a page that its user sees asks hidden pages for a place, and nobody asks a page that is seen", async () => {
  const [hidden, seen] = [await page("hidden"), await page()];
  const first = await hidden.ask();
  await seen.ask();
  expect(await (await page("hidden")).ask()).toBeUndefined();
  expect([hidden.asked, seen.asked].map((f) => f.mock.calls.length)).toEqual([0, 0]); // a hidden page asks nobody
  const other = await page();
  expect(await other.ask()).toBeUndefined();
  expect([hidden.asked, seen.asked].map((f) => f.mock.calls.length)).toEqual([1, 0]);
  expect([await other.ask("answer"), await other.ask("answer"), await other.ask("answer")].at(-1)).toBeUndefined();
  expect(hidden.asked.mock.calls.length).toBe(1); // it has no place of that kind
  first?.leave();
  await new Promise((r) => setImmediate(r));
  expect(await other.ask()).toBeDefined();
  expect(await other.ask()).toBeUndefined();
  expect(hidden.asked.mock.calls.length).toBe(1); // it has left
});
