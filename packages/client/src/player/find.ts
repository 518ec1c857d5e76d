// Find in one session. The page has elements only for the visible rows, so the
// browser's own search is not enough: the server searches the whole session.

import type { Api as Http } from "../api.ts";
import { TapedeckError } from "../errors.ts";
import type { Event, SearchHit } from "../fold/types.ts";

type Api = Pick<Http, "search" | "session" | "events">;

/** A session that shares its events below an offset with the session on the page. */
export interface Shared {
  session: string;
  below: number;
}

/** At most this many generations of forks are searched. */
const maxAncestors = 32;

/** The session and its ancestors. The index has the shared events under the ancestor only. */
export async function lineage(api: Api, id: string): Promise<Shared[]> {
  const out: Shared[] = [];
  let below = Number.POSITIVE_INFINITY;
  for (let at: string | undefined = id; at !== undefined && out.length < maxAncestors; ) {
    const session: string = at;
    const entry = await api.session(session).catch((err: unknown) => {
      if (session !== id && err instanceof TapedeckError && err.status >= 400) return undefined; // the ancestor was deleted
      throw err;
    });
    if (!entry) break;
    out.push({ session, below });
    below = Math.min(below, entry.fork_at ?? Number.POSITIVE_INFINITY);
    at = entry.parent;
  }
  return out;
}

/** The limit of fetched hits; the server returns the best hits first. */
export const maxHits = 1000;

export interface Found {
  hits: SearchHit[]; // by offset
  more: boolean; // the server has more hits, which match less well
  behind: boolean; // the server has not indexed all events yet
}

export async function find(api: Api, from: Shared[], q: string, thread?: string, signal?: AbortSignal): Promise<Found> {
  const found: Found = { hits: [], more: false, behind: false };
  const seen = new Set<number>();
  for (const { session, below } of from) {
    for (let cursor: string | undefined; !found.more; ) {
      const page = await api.search({ q: asQuery(q), session, cursor, limit: 100 }, { signal });
      found.behind ||= (page.behind ?? 0) > 0;
      for (const h of page.hits) {
        if (h.kind === "title" || h.offset >= below || seen.has(h.offset)) continue;
        if (thread && (h.thread ?? "main") !== thread) continue;
        seen.add(h.offset);
        found.hits.push(h);
      }
      cursor = page.next;
      if (!cursor) break;
      found.more = found.hits.length >= maxHits;
    }
  }
  found.hits.sort((a, b) => a.offset - b.offset);
  return found;
}

/** Makes the last word a prefix, because results show while the user types. */
export function asQuery(q: string): string {
  const open = (q.match(/"/g)?.length ?? 0) % 2 === 1;
  return !open && /[\p{L}\p{N}]$/u.test(q) ? `${q}*` : q;
}

/** A part of a query: consecutive words that must, or must not, occur. */
export interface Term {
  excluded: boolean;
  words: string[];
  /** The last word is a prefix. */
  isPrefix: boolean;
}

export function termsIn(q: string): Term[] {
  return [...q.matchAll(/(-?)(?:"([^"]*)"?|([^\s"]+))/g)]
    .map(([, minus, quoted, word]) => ({
      excluded: minus === "-",
      words: (quoted ?? word ?? "").match(/[\p{L}\p{N}]+/gu) ?? [],
      isPrefix: word?.endsWith("*") ?? false,
    }))
    .filter(({ words }) => words.length > 0);
}

/** A pattern for consecutive words, with any characters between them that are no letters or digits. */
export function wordsPattern(words: string[], isPrefix: boolean, flags: string): RegExp {
  const end = isPrefix ? "" : "(?![\\p{L}\\p{N}])";
  return new RegExp(`(?<![\\p{L}\\p{N}])${words.join("[^\\p{L}\\p{N}]+")}${end}`, flags);
}

/** A pattern for the words to highlight in a text; undefined if the query has none. */
export function highlightPattern(q: string): RegExp | undefined {
  const terms = termsIn(q).filter(({ excluded }) => !excluded);
  if (terms.length === 0) return undefined;
  return new RegExp(terms.map(({ words }) => wordsPattern(words, true, "u").source).join("|"), "giu");
}

const starts = /^(TEXT_MESSAGE|REASONING_MESSAGE|TOOL_CALL)_START$/;

/** The first offset as of which the message or tool call of a hit is complete. */
export async function completeAt(api: Api, id: string, offset: number): Promise<number> {
  const first = (await api.events(id, { from: offset, limit: 1 })).events[0];
  const [, kind] = first?.type.match(starts) ?? [];
  if (!first || !kind) return offset + 1;
  const ends = [`${kind}_END`, "RUN_FINISHED", "RUN_ERROR"];
  const { events } = await api.events(id, { from: offset, limit: 200, type: ends });
  const end = events.find((e) => isEnd(e, first, kind));
  return (end?.offset ?? offset) + 1;
}

function isEnd(e: Event, first: Event, kind: string): boolean {
  if (e.type !== `${kind}_END`) return e.invocation === first.invocation;
  const name = kind === "TOOL_CALL" ? "toolCallId" : "messageId";
  return e.data?.[name] === first.data?.[name];
}
