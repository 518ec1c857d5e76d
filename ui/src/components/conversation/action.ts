import type { Json, JsonObject } from "@/fold/types";

/** What an agent asks leave for, as far as the event tells it in the known words. */
export interface Action {
  tool?: string;
  command?: string;
  folder?: string;
  changes: { path: string; diff: string }[];
  locations: { path: string; line?: number }[];
  arguments?: string;
  note?: string;
  cut: number;
  more: number;
}

const objects = (v: Json | undefined): JsonObject[] =>
  Array.isArray(v) ? v.filter((x): x is JsonObject => typeof x === "object" && x !== null && !Array.isArray(x)) : [];
const text = (v: Json | undefined) => (typeof v === "string" && v !== "" ? v : undefined);
const amount = (v: Json | undefined) => (typeof v === "number" && v > 0 ? v : 0);

/** Reads the action of a permission. Anybody may have written it. */
export function actionOf(raw: JsonObject | undefined): Action | undefined {
  if (!raw) return undefined;
  const changes = objects(raw.changes).map((c) => ({ path: text(c.path) ?? "a file", diff: text(c.diff) ?? "" }));
  const locations = objects(raw.locations).flatMap((l) => {
    const path = text(l.path);
    if (!path) return [];
    return [typeof l.line === "number" ? { path, line: l.line } : { path }];
  });
  return {
    tool: text(raw.tool),
    command: text(raw.command),
    folder: text(raw.folder),
    changes,
    locations: locations.filter((l) => l.line !== undefined || !changes.some((c) => c.path === l.path)),
    arguments: text(raw.arguments),
    note: text(raw.note),
    cut: amount(raw.cut),
    more: amount(raw.more),
  };
}

// Characters that change the order of letters, cannot be seen, or look like the
// space that they are not: with them a command looks like another one. The
// terminal has the same set, in cmd/tapedeck/internal/terminal/visible.go.
const hidden = /[\p{Cc}\p{Cf}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/** A text in which nothing is hidden: characters that cannot be seen have their numbers. */
export function visible(s: string): string {
  return s.replace(hidden, (c) => {
    if (c === " " || c === "\n" || c === "\t") return c;
    return `⟨U+${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

/** The lines of a diff with their signs. */
export function linesOfDiff(diff: string): { op: string; text: string }[] {
  const lines = diff.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines.map((l) => {
    if (l.startsWith("@@")) return { op: "@", text: visible(l) };
    const op = l[0] === "+" || l[0] === "-" ? l[0] : " ";
    return { op, text: visible(op === " " && l[0] !== " " ? l : l.slice(1)) };
  });
}
