// What is in the page: see engine/exchange/encode_html.go, which writes it.

import type { DeckOptions } from "@/data/deck";
import type { Event, ReplayIndex, SessionEntry, Summary } from "@/fold/types";
import type { Source } from "@/hooks/source";
import { saidIn, searchIn } from "./search";

/** What a recording says of itself. */
export interface About {
  tapedeck: number; // version of the format
  view?: string; // "effective": only what was in force
  session: SessionEntry;
  exported_at: string;
  from: number; // the offsets that were exported, in the session
  to: number;
  redacted?: boolean;
  index: ReplayIndex;
  summary: Summary;
}

export interface Tape {
  about: About;
  events: Event[]; // by offset, from 0
}

const version = 1;

/** Reads all that is in the page, and lets the elements go that it was in. */
export async function readTape(page: ParentNode, onPart: (done: number, all: number) => void): Promise<Tape> {
  if (typeof DecompressionStream === "undefined")
    throw new Error("this browser is too old to unpack the recording; one of 2023 or later can");
  const last = page.querySelector('script[type="application/vnd.tapedeck.about"]');
  if (!last) throw new Error("the file is not whole: its end is missing");
  const about: About = JSON.parse(await unpack(last));
  if (about.tapedeck !== version)
    throw new Error(`this recording is of version ${about.tapedeck}, which is not known here`);
  const events: Event[] = [];
  const parts = [...page.querySelectorAll('script[type="application/vnd.tapedeck.events"]')];
  for (const [i, part] of parts.entries()) {
    onPart(i, parts.length);
    for (const line of (await unpack(part)).split("\n")) if (line) events.push(JSON.parse(line));
  }
  if (events.length !== about.session.head) throw new Error("the file is not whole: some events are missing");
  return { about, events };
}

async function unpack(element: Element): Promise<string> {
  const text = element.textContent ?? "";
  element.remove();
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

/** A player's server, as far as it needs one. */
export function deckOptions({ about, events }: Tape): DeckOptions {
  return {
    finished: true,
    follow: () => ({ start: () => {}, stop: () => {}, reconnect: () => {} }),
    api: {
      session: async () => about.session,
      events: async (_, q = {}) => pageOf(events, q.from ?? 0, q.limit ?? 1000),
      replayIndex: async () => about.index,
      snapshot: () => Promise.reject(new Error("all events of a recording are at hand")),
    },
  };
}

export function sourceOf({ about, events }: Tape): Source {
  const fits = (e: Event, wanted: string | string[] | undefined, name: "channel" | "type") =>
    !wanted || [wanted].flat().join(",").split(",").includes(e[name]);
  const alone = { ...about.session, parent: undefined }; // what it shared with others is in it
  let said: ReturnType<typeof saidIn> | undefined;
  return {
    recording: true,
    session: async () => alone,
    search: async ({ q }) => {
      said ??= saidIn(events);
      return { hits: searchIn(said, about.session.id, q) };
    },
    summary: async () => about.summary,
    events: async (_, q = {}) => {
      if (!q.channel && !q.type) return pageOf(events, q.from ?? 0, q.limit ?? 1000);
      const found = events.filter(
        (e) => e.offset >= (q.from ?? 0) && fits(e, q.channel, "channel") && fits(e, q.type, "type"),
      );
      const page = found.slice(0, q.limit ?? 1000);
      const next = page.length < found.length ? page.at(-1)!.offset + 1 : events.length;
      return { events: page, next, head: events.length, closed: true };
    },
  };
}

function pageOf(events: Event[], from: number, limit: number) {
  const page = events.slice(from, from + limit);
  return { events: page, next: from + page.length, head: events.length, closed: true };
}
