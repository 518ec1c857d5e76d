import type { SessionEntry } from "@tapedeck/client";

/** The labels that the screen reads; docs/http.md documents them. */
export const archived = "archived";
export const starred = "starred";
export const folder = "folder";
const tagPrefix = "tag.";

type Labelled = Pick<SessionEntry, "labels">;

export const has = (s: Labelled, name: string) => s.labels?.[name] !== undefined;

/** The tags of a session, in the order of the alphabet. */
export function tagsOf(s: Labelled): string[] {
  return Object.keys(s.labels ?? {})
    .filter((n) => n.startsWith(tagPrefix) && n.length > tagPrefix.length)
    .map((n) => n.slice(tagPrefix.length))
    .sort();
}

export const tagLabel = (tag: string) => tagPrefix + tag;

/** The tags in a text, one for each word. Characters that a tag cannot have become "-". */
export function tagsIn(text: string): string[] {
  const words = text.split(/[\s,]+/).map((w) => w.replace(/[^\w.:@-]+/g, "-").replace(/^-+|-+$/g, ""));
  return [...new Set(words.filter(Boolean))].map((w) => w.slice(0, 100)).sort();
}

/** The change of labels from some tags to others. */
export function changeOfTags(from: string[], to: string[]): Record<string, string | null> {
  const change: Record<string, string | null> = {};
  for (const t of from) if (!to.includes(t)) change[tagLabel(t)] = null;
  for (const t of to) if (!from.includes(t)) change[tagLabel(t)] = "true";
  return change;
}
