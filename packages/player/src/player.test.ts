import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { TapedeckPlayer } from "./element.ts";
import { read } from "./source.ts";
import "./index.ts";

const events = [
  ["session.created", "session", { title: "A trip" }],
  ["message.added", "chunks", { message: { id: "u1", role: "user", content: "Where to?" } }],
  ["TEXT_MESSAGE_START", "chunks", { messageId: "a1", role: "assistant" }],
  ["TEXT_MESSAGE_CONTENT", "chunks", { messageId: "a1", delta: "<img src=x onerror=alert(1)> By " }],
  ["TEXT_MESSAGE_CONTENT", "chunks", { messageId: "a1", delta: "train\n```sh\nls\n```\n" }],
  ["TEXT_MESSAGE_END", "chunks", { messageId: "a1" }],
].map(([type, channel, data], offset) => ({
  offset,
  type,
  channel,
  timestamp: new Date(Date.UTC(2026, 0, 5, 12, 0, offset)).toISOString(),
  data,
}));
const header = { tapedeck: 1, session: { id: "trip", title: "A trip" } };
const json = JSON.stringify({ ...header, events });
const ndjson = [header, ...events].map((l) => JSON.stringify(l)).join("\n");

beforeEach(() => vi.stubGlobal("requestAnimationFrame", (f: () => void) => setImmediate(f)));
afterEach(() => document.body.replaceChildren());

/** Puts a player on the page, and waits until it shows something or fails. */
async function put(text: string, attributes: Record<string, string> = {}): Promise<TapedeckPlayer> {
  vi.stubGlobal("fetch", async () => new Response(text, { status: text === "" ? 404 : 200 }));
  const e = document.createElement("tapedeck-player") as TapedeckPlayer;
  for (const [name, value] of Object.entries({ src: "/trip.json", ...attributes })) e.setAttribute(name, value);
  const done = new Promise((r) => {
    e.addEventListener("ready", r);
    e.addEventListener("error", r);
  });
  document.body.append(e);
  await done;
  return e;
}

/** Only a failing test waits so long: test machines can be slow. */
const patience = { timeout: 60_000 };

const rows = (e: TapedeckPlayer) => [...e.shadowRoot!.querySelectorAll("li")].map((li) => li.textContent);
const find = <T extends Element>(e: TapedeckPlayer, selector: string) => e.shadowRoot!.querySelector<T>(selector)!;
const shows = (e: TapedeckPlayer, want: (rows: (string | null)[]) => void) => vi.waitFor(() => want(rows(e)), patience);

test.each([
  ["json", json],
  ["ndjson", ndjson],
])("it plays an export of the format %s from its beginning", async (_, text) => {
  const e = await put(text);
  expect(find(e, "b").textContent).toBe("A trip");
  expect(rows(e)).toEqual([]);
  e.player?.seek(events.length);
  await shows(e, (r) => expect(r[1]).toContain("<img src=x onerror=alert(1)> By train"));
  expect(rows(e)).toHaveLength(2);
  expect(find(e, "img")).toBeNull(); // text is text
  expect(find(e, "pre").textContent).toBe("ls\n");
  expect(find<HTMLInputElement>(e, "input").max).toBe(String(events.length));
});

test("it begins at an offset, and the bar moves it", async () => {
  const e = await put(json, { at: "2" });
  expect(rows(e)).toEqual(["userWhere to?"]);
  const bar = find<HTMLInputElement>(e, "input");
  expect(bar.value).toBe("2");
  expect(bar.getAttribute("aria-valuetext")).toBe("event 2 of 6");
  bar.value = "4";
  bar.dispatchEvent(new Event("input"));
  await shows(e, (r) => expect(r[1]).toMatch(/By $/));
  e.setAttribute("at", "1");
  await shows(e, (r) => expect(r).toEqual([]));
});

test("a speed of its own is offered once, also for a second source", async () => {
  const e = await put(json, { speed: "20" });
  const again = new Promise((r) => e.addEventListener("ready", r));
  e.setAttribute("src", "/other.json");
  await again;
  const values = [...find<HTMLSelectElement>(e, "select").options].map((o) => o.value);
  expect(values.filter((v) => v === "20")).toHaveLength(1);
});

test("it plays to the end by itself", async () => {
  const e = await put(json, { autoplay: "", speed: "1000" });
  await shows(e, (r) => expect(r[1]).toContain("train"));
  await vi.waitFor(() => expect(find(e, "footer button").textContent).toBe("Play"), patience);
});

test("a row that does not change stays the same element", async () => {
  const e = await put(json, { at: "4" });
  const [first] = e.shadowRoot!.querySelectorAll("li");
  e.player?.seek(6);
  await shows(e, (r) => expect(r[1]).toContain("train"));
  expect(e.shadowRoot!.querySelectorAll("li")[0]).toBe(first);
});

test.each([
  ["", "the recording cannot be loaded: the answer has status 404"],
  ["<html>", "the file is not an export of a session (export the session with the format json or ndjson)"],
])("a source that cannot be played says why (%j)", async (text, message) => {
  const e = await put(text);
  expect(find(e, "p.error").textContent).toBe(message);
});

test("an element that leaves the page stops", async () => {
  const e = await put(json);
  const { player } = e;
  e.remove();
  expect(e.player).toBeUndefined();
  expect(player?.get().playing).toBe(false);
});

test("the address of a session is followed at its server", async () => {
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (url: string) => {
    asked.push(url);
    return Response.json({ error: { kind: "not_found", message: "there is no session demo" } }, { status: 404 });
  });
  const e = document.createElement("tapedeck-player") as TapedeckPlayer;
  e.setAttribute("src", "https://deck.example/base/s/demo");
  document.body.append(e);
  await vi.waitFor(() => expect(find(e, "p.error").textContent).toBe("there is no session demo"), patience);
  expect(asked).toEqual(["https://deck.example/base/api/v1/sessions/demo"]);
});

test("hostile files are refused whole", () => {
  for (const text of [
    "null",
    "[]",
    "{}",
    '{"tapedeck":2,"events":[]}',
    '{"tapedeck":1,"events":[1]}',
    '{"tapedeck":1}\nnull',
  ])
    expect(() => read(text), text).toThrow(/not an export/);
});

test("a poster shows a moment until somebody plays it from its start", async () => {
  const e = await put(json, { poster: "4", at: "2" });
  const poster = find<HTMLButtonElement>(e, "button.poster");
  await shows(e, (r) => expect(r[1]).toContain("By"));
  expect(poster.hidden).toBe(false);
  expect(e.player?.get()).toMatchObject({ at: 4, playing: false });
  poster.click();
  expect(poster.hidden).toBe(true);
  await vi.waitFor(() => expect(e.player?.get().at).toBeLessThan(4), patience);
  expect(e.player?.get().playing).toBe(true);
  const moved = await put(json, { poster: "4" });
  const bar = find<HTMLInputElement>(moved, "input");
  bar.dispatchEvent(new Event("input"));
  expect(find<HTMLButtonElement>(moved, "button.poster").hidden).toBe(true);
  expect(find<HTMLButtonElement>(await put(json), "button.poster").hidden).toBe(true);
});
