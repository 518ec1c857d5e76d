import type { Json, JsonObject } from "@tapedeck/client";

/** The action that an agent asks permission for: the known members of the event. */
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

/** Reads the action of a permission request. The input is not trusted. */
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

// Characters that change the order of letters, are invisible, or look like a space
// but are not one. They can make a command look like another one. The command
// line uses the same set, see cmd/tapedeck/internal/terminal/visible.go.
const hiddenCharacters = /[\p{Cc}\p{Cf}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/** Makes a text safe to display: hidden characters are replaced by their code points. */
export function visible(s: string): string {
  return s.replace(hiddenCharacters, (c) => {
    if (c === " " || c === "\n" || c === "\t") return c;
    return `⟨U+${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

/** The lines of a diff with their operations. */
export function linesOfDiff(diff: string): { op: string; text: string }[] {
  const lines = diff.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines.map((l) => {
    if (l.startsWith("@@")) return { op: "@", text: visible(l) };
    const op = l[0] === "+" || l[0] === "-" ? l[0] : " ";
    return { op, text: visible(op === " " && l[0] !== " " ? l : l.slice(1)) };
  });
}
