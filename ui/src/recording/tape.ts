// Reads the data of a recording, which engine/exchange/encode_html.go writes into the page.

import type { Envelope, ReplayIndex, SessionEntry, Summary } from "@tapedeck/client";
import { type DeckOptions, recorded } from "@tapedeck/client/player";
import type { Source } from "@/hooks/source";
import { searchIn, searchItems } from "./search";

/** The metadata of a recording. */
export interface About {
  tapedeck: number; // version of the format
  view?: string; // "effective": only active events
  session: SessionEntry;
  exported_at: string;
  from: number; // the exported range of offsets in the session
  to: number;
  redacted?: boolean;
  start?: number; // where play begins
  poster?: number; // the moment that is shown until then
  theme?: string;
  index: ReplayIndex;
  summary: Summary;
}

export interface Tape {
  about: About;
  events: Envelope[]; // by offset, from 0
}

const version = 1;

/** Reads all data from the page, and removes its elements. */
export async function readTape(page: ParentNode, onPart: (done: number, all: number) => void): Promise<Tape> {
  if (typeof DecompressionStream === "undefined")
    throw new Error("this browser is too old for the recording; use one from 2023 or later");
  const last = page.querySelector('script[type="application/vnd.tapedeck.about"]');
  if (!last) throw new Error("the file is incomplete: its end is missing");
  const about: About = JSON.parse(await unpack(last));
  if (about.tapedeck !== version)
    throw new Error(`this page does not support version ${about.tapedeck} of the recording format`);
  const events: Envelope[] = [];
  const parts = [...page.querySelectorAll('script[type="application/vnd.tapedeck.events"]')];
  for (const [i, part] of parts.entries()) {
    onPart(i, parts.length);
    for (const line of (await unpack(part)).split("\n")) if (line) events.push(JSON.parse(line));
  }
  if (events.length !== about.session.head) throw new Error("the file is incomplete: some events are missing");
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

/** Options with which a player reads from the recording instead of a server. */
export function deckOptions({ about, events }: Tape): DeckOptions {
  return recorded({ session: about.session, events, index: about.index });
}

export function sourceOf({ about, events }: Tape): Source {
  const fits = (e: Envelope, wanted: string | string[] | undefined, name: "channel" | "type") =>
    !wanted || [wanted].flat().join(",").split(",").includes(e[name]);
  const withoutParent = { ...about.session, parent: undefined }; // the recording contains the inherited events
  let items: ReturnType<typeof searchItems> | undefined;
  return {
    recording: true,
    session: async () => withoutParent,
    search: async ({ q }) => {
      items ??= searchItems(events);
      return { hits: searchIn(items, about.session.id, q) };
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

function pageOf(events: Envelope[], from: number, limit: number) {
  const page = events.slice(from, from + limit);
  return { events: page, next: from + page.length, head: events.length, closed: true };
}
