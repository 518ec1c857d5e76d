import type { ToolCall } from "@tapedeck/client";
import { diffLines, type Edit, editsOf, type Line } from "./edit";

/** All changes of one file in a session. */
export interface FileChanges {
  path: string;
  /** The parts that changed, one below the other. */
  parts: Line[][];
  added: number;
  removed: number;
  /** The number of edits. */
  edits: number;
  /** The offset of the answer to the newest edit. */
  last: number;
  /** The file was written whole: what it had before is not known. */
  whole: boolean;
}

/** A part of a file: what was there before the session, and now. Patches are kept as they are. */
interface Part {
  before: string[];
  after: string[];
  patch?: Line[];
}

interface File {
  path: string;
  parts: Part[];
  edits: number;
  last: number;
  whole: boolean;
}

/**
 * The files that calls have changed, each as one diff, sorted by path. An edit of a text
 * that an earlier edit wrote changes that one, so an edit that a later one undoes is left out.
 * Calls that failed, or have no result, changed nothing.
 */
export function changesOf(calls: readonly ToolCall[]): FileChanges[] {
  const files = new Map<string, File>();
  for (const call of [...calls].sort((a, b) => a.offset - b.offset)) {
    if (call.status !== "complete") continue;
    for (const edit of editsOf(call)) {
      let file = files.get(edit.path);
      if (!file) {
        file = { path: edit.path, parts: [], edits: 0, last: 0, whole: false };
        files.set(edit.path, file);
      }
      file.edits++;
      file.last = call.end_offset ?? call.offset;
      apply(file, edit);
    }
  }
  return [...files.values()].map(shown).sort((a, b) => (a.path < b.path ? -1 : 1));
}

function apply(file: File, edit: Edit): void {
  if (edit.kind === "patch") {
    file.parts.push({ before: [], after: [], patch: edit.lines });
    return;
  }
  if (edit.kind === "write") {
    file.parts = [{ before: [], after: edit.after }];
    file.whole = true;
    return;
  }
  for (const part of [...file.parts].reverse()) {
    const at = part.patch ? -1 : indexIn(part.after, edit.before);
    if (at < 0) continue;
    part.after = [...part.after.slice(0, at), ...edit.after, ...part.after.slice(at + edit.before.length)];
    return;
  }
  file.parts.push({ before: edit.before, after: edit.after });
}

/** A longer comparison would block the page: the edit then has a part of its own. */
const maxCompared = 5_000_000;

/** Where lines are in other lines; -1 if they are not. */
function indexIn(lines: string[], wanted: string[]): number {
  if (wanted.length === 0 || wanted.length * lines.length > maxCompared) return -1;
  for (let i = 0; i + wanted.length <= lines.length; i++)
    if (wanted.every((line, n) => lines[i + n] === line)) return i;
  return -1;
}

function shown({ parts, ...file }: File): FileChanges {
  const diffs = parts.map((p) => p.patch ?? diffLines(p.before, p.after));
  const changed = diffs.filter((lines) => lines.some((l) => l.op === "+" || l.op === "-"));
  const count = (op: string) => changed.reduce((n, lines) => n + lines.filter((l) => l.op === op).length, 0);
  return { ...file, parts: changed, added: count("+"), removed: count("-") };
}

/** The changes as a text that can be copied: a unified diff without line numbers, which the log does not have. */
export function asPatch(files: FileChanges[]): string {
  return files
    .map((f) => {
      const parts = f.parts.map((lines) => {
        const head = lines[0]?.op === "@" ? "" : "@@ @@\n";
        return head + lines.map((l) => (l.op === "@" ? l.text : l.op + l.text)).join("\n");
      });
      return `--- a/${f.path}\n+++ b/${f.path}\n${parts.join("\n")}\n`;
    })
    .join("");
}
