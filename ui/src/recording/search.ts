// The search of the server's index, for one session that is in memory.

import type { Envelope, SearchHit } from "@tapedeck/client";
import { Conversation } from "@tapedeck/client/fold";
import { termsIn, wordsPattern } from "@tapedeck/client/player";

/** A searchable message or tool call, at its first offset. */
interface SearchItem {
  offset: number;
  thread: string;
  timestamp: string;
  kind: "message" | "tool";
  text: string; // normalized
}

/** All searchable items, by offset, including reverted ones. */
export function searchItems(events: Envelope[]): SearchItem[] {
  const c = new Conversation().keep();
  for (const e of events) c.apply(e);
  const { messages, tool_calls } = c.snapshot();
  const items: SearchItem[] = [];
  const add = (offset: number, thread: string, timestamp: string, kind: SearchItem["kind"], text: string) => {
    if (text) items.push({ offset, thread, timestamp, kind, text: normalized(text) });
  };
  for (const m of messages) add(m.offset, m.thread, m.started_at, "message", m.text);
  for (const k of tool_calls) {
    add(k.offset, k.thread, k.started_at, "tool", `${k.name} ${k.arguments}`);
    if (k.result) add(k.result.offset, k.thread, k.ended_at ?? k.started_at, "tool", k.result.text);
  }
  return items.sort((a, b) => a.offset - b.offset);
}

/** The items that match a query: all its words (with a star, as prefixes), and none of the words with a minus. */
export function searchIn(items: SearchItem[], session: string, q: string): SearchHit[] {
  const terms = termsIn(normalized(q)).map(({ excluded, words, isPrefix }) => ({
    excluded,
    pattern: wordsPattern(words, isPrefix, "u"),
  }));
  if (!terms.some((t) => !t.excluded)) return [];
  return items
    .filter(({ text }) => terms.every(({ excluded, pattern }) => pattern.test(text) !== excluded))
    .map(({ offset, thread, timestamp, kind }) => ({ session, offset, thread, timestamp, kind, snippet: "" }));
}

/** Text for comparison: lower case, without diacritics. */
function normalized(text: string): string {
  return text
    .normalize("NFD")
    .replace(/\p{M}+/gu, "")
    .toLowerCase();
}
