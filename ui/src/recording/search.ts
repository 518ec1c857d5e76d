// What the server's index does, for one session that is here as a whole.

import { termsIn, wordsPattern } from "@/data/find";
import { Conversation } from "@/fold/conversation";
import type { Event, SearchHit } from "@/fold/types";

/** Something that was said or done, where it began. */
interface Said {
  offset: number;
  thread: string;
  timestamp: string;
  kind: "message" | "tool";
  text: string; // as it is compared
}

/** All that can be found, by offset; also what was taken back. */
export function saidIn(events: Event[]): Said[] {
  const c = new Conversation().keep();
  for (const e of events) c.apply(e);
  const { messages, tool_calls } = c.snapshot();
  const said: Said[] = [];
  const add = (offset: number, thread: string, timestamp: string, kind: Said["kind"], text: string) => {
    if (text) said.push({ offset, thread, timestamp, kind, text: plain(text) });
  };
  for (const m of messages) add(m.offset, m.thread, m.started_at, "message", m.text);
  for (const k of tool_calls) {
    add(k.offset, k.thread, k.started_at, "tool", `${k.name} ${k.arguments}`);
    if (k.result) add(k.result.offset, k.thread, k.ended_at ?? k.started_at, "tool", k.result.text);
  }
  return said.sort((a, b) => a.offset - b.offset);
}

/** What has all words of a query, as words or, with a star, as beginnings of words, and none that has a minus. */
export function searchIn(said: Said[], session: string, q: string): SearchHit[] {
  const terms = termsIn(plain(q)).map(({ excluded, words, isPrefix }) => ({
    excluded,
    pattern: wordsPattern(words, isPrefix, "u"),
  }));
  if (!terms.some((t) => !t.excluded)) return [];
  return said
    .filter(({ text }) => terms.every(({ excluded, pattern }) => pattern.test(text) !== excluded))
    .map(({ offset, thread, timestamp, kind }) => ({ session, offset, thread, timestamp, kind, snippet: "" }));
}

/** A text without what makes no difference: capitals, and marks on letters. */
function plain(text: string): string {
  return text
    .normalize("NFD")
    .replace(/\p{M}+/gu, "")
    .toLowerCase();
}
