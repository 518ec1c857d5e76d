// Finding in one session. The rows of a page are only those that are seen, so
// the browser's own search would not do; the server looks through all of it.
import type { Event, SearchHit } from "../fold/types";
import { ApiError, type api as http } from "./api";

type Api = Pick<typeof http, "search" | "session" | "events">;

/** A session whose events below an offset are those of the one that is looked at. */
export interface Shared {
  session: string;
  below: number;
}

/** Somebody who forks forks of forks more often has found a way around this. */
const deepest = 32;

/** The session and those that it shares a beginning with: what was said there is kept there. */
export async function lineage(api: Api, id: string): Promise<Shared[]> {
  const out: Shared[] = [];
  let below = Number.POSITIVE_INFINITY;
  for (let at: string | undefined = id; at !== undefined && out.length < deepest; ) {
    const session: string = at;
    const entry = await api.session(session).catch((err: unknown) => {
      if (session !== id && err instanceof ApiError && err.status >= 400) return undefined; // it was deleted
      throw err;
    });
    if (!entry) break;
    out.push({ session, below });
    below = Math.min(below, entry.fork_at ?? Number.POSITIVE_INFINITY);
    at = entry.parent;
  }
  return out;
}

/** The most hits that are fetched; the server gives those first that fit best. */
export const mostHits = 1000;

export interface Found {
  hits: SearchHit[]; // by offset
  more: boolean; // there are others, which fit less well
  behind: boolean; // the server has not looked at all of it yet
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
      found.more = found.hits.length >= mostHits;
    }
  }
  found.hits.sort((a, b) => a.offset - b.offset);
  return found;
}

/** The last word may still go on: people look at what comes while they type. */
export function asQuery(q: string): string {
  const open = (q.match(/"/g)?.length ?? 0) % 2 === 1;
  return !open && /[\p{L}\p{N}]$/u.test(q) ? `${q}*` : q;
}

/** A part of a query: words that follow each other, which are to be there or not. */
export interface Term {
  not: boolean;
  words: string[];
  /** The last word may go on. */
  begins: boolean;
}

export function termsIn(q: string): Term[] {
  return [...q.matchAll(/(-?)(?:"([^"]*)"?|([^\s"]+))/g)]
    .map(([, not, quoted, word]) => ({
      not: not === "-",
      words: (quoted ?? word ?? "").match(/[\p{L}\p{N}]+/gu) ?? [],
      begins: word?.endsWith("*") ?? false,
    }))
    .filter(({ words }) => words.length > 0);
}

/** Finds some words where they follow each other, whatever is between them. */
export function wordsOf(words: string[], begins: boolean, flags: string): RegExp {
  const end = begins ? "" : "(?![\\p{L}\\p{N}])";
  return new RegExp(`(?<![\\p{L}\\p{N}])${words.join("[^\\p{L}\\p{N}]+")}${end}`, flags);
}

/** What of a text is to be marked, as far as the words tell; undefined if there are none. */
export function wordsIn(q: string): RegExp | undefined {
  const terms = termsIn(q).filter(({ not }) => !not);
  if (terms.length === 0) return undefined;
  return new RegExp(terms.map(({ words }) => wordsOf(words, true, "u").source).join("|"), "giu");
}

const starts = /^(TEXT_MESSAGE|REASONING_MESSAGE|TOOL_CALL)_START$/;

/** The first offset at which what a hit begins is there as a whole. */
export async function wholeAt(api: Api, id: string, offset: number): Promise<number> {
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
