import type { Json, JsonObject, ToolCall } from "@tapedeck/client";

/** A line of a diff: its operation is " ", "-", "+" or "@" for a head. */
export interface Line {
  op: string;
  text: string;
}

/** What a tool call does to one file, as far as its arguments show it. */
export type Edit = { path: string } & (
  | { kind: "replace"; before: string[]; after: string[] }
  // The file is written whole. What it had before is not known.
  | { kind: "write"; after: string[] }
  | { kind: "patch"; lines: Line[] }
);

/** The tools that edit files, in lower case and without punctuation. The Go package view has the same list. */
const editors = new Set(
  `write edit multiedit notebookedit writefile replace editfile createfile update create updatefile savefile
  writetofile overwritefile searchreplace searchandreplace replaceinfile strreplace stringreplace insert inserttext
  insertcontent applydiff applyedit applypatch patch strreplaceeditor strreplacebasededittool`.split(/\s+/),
);
const pathNames = [
  "file_path",
  "path",
  "filePath",
  "file",
  "notebook_path",
  "absolute_path",
  "target_file",
  "filename",
];
const oldNames = ["old_string", "oldText", "old_str", "oldString", "old", "old_text", "search"];
const newNames = ["new_string", "newText", "new_str", "newString", "new", "new_text", "replace", "new_source"];
const wholeNames = ["content", "file_text", "contents", "text"];
const patchNames = ["patch", "diff", "input", "patchText"];

/** Whether a tool edits files, by its name. */
export function isEditor(name: string): boolean {
  return editors.has(
    name
      .slice(name.lastIndexOf("__") + 1)
      .replace(/[_\s-]/g, "")
      .toLowerCase(),
  );
}

const isRecord = (v: Json | undefined): v is JsonObject => typeof v === "object" && v !== null && !Array.isArray(v);

function text(o: JsonObject, names: string[]): string | undefined {
  for (const name of names) if (typeof o[name] === "string") return o[name];
  return undefined;
}

/** The end of a file is not a line of its own. */
export function linesOf(s: string): string[] {
  const lines = s.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

const cache = new WeakMap<ToolCall, Edit[]>();

/** The edits that a call makes. Its arguments are not trusted; other shapes give none. */
export function editsOf(call: ToolCall): Edit[] {
  let edits = cache.get(call);
  if (!edits) {
    edits = readEdits(call);
    cache.set(call, edits);
  }
  return edits;
}

function readEdits(call: ToolCall): Edit[] {
  const { input } = call;
  const editor = isEditor(call.name);
  if (input === undefined) return editor ? readPatch(call.arguments) : []; // Codex gives the plain text of a patch
  if (!isRecord(input)) return [];
  const path = text(input, pathNames);
  if (!path) return editor ? readPatch(text(input, patchNames) ?? "") : [];
  if (editor) {
    const patch = text(input, ["patch", "diff"]);
    if (patch !== undefined) {
      const all = readPatch(patch);
      return all.length > 0 ? all : readPatch(`+++ ${path}\n${patch}`);
    }
  }
  const list = Array.isArray(input.edits) ? input.edits.filter(isRecord) : [input];
  const changes = list.flatMap((c): Edit[] => {
    const after = text(c, newNames);
    if (after === undefined) return [];
    return [{ path, kind: "replace", before: linesOf(text(c, oldNames) ?? ""), after: linesOf(after) }];
  });
  if (changes.length > 0) return changes;
  const whole = editor ? text(input, wholeNames) : undefined;
  return whole === undefined ? [] : [{ path, kind: "write", after: linesOf(whole) }];
}

const patchHead = /^(?:\+\+\+ (?:b\/)?|\*\*\* (?:Add|Update|Delete) File: |\*\*\* Move to: )([^\t]+)/;

/** The files of a patch, in the form of Codex or as a unified diff. */
function readPatch(patch: string): Edit[] {
  const out: Extract<Edit, { kind: "patch" }>[] = [];
  const lines = linesOf(patch);
  let from = "";
  for (const [i, raw] of lines.entries()) {
    const line = raw.replace(/\r$/, "");
    if (line.startsWith("--- ") && lines[i + 1]?.startsWith("+++ ")) {
      from = line.slice(4).replace(/^a\//, "").replace(/\t.*/, "");
      continue;
    }
    const path = line.match(patchHead)?.[1];
    if (path) out.push({ path: path === "/dev/null" ? from : path, kind: "patch", lines: [] });
    else if (out.length > 0 && /^[-+ ]/.test(line)) out.at(-1)?.lines.push({ op: line[0]!, text: line.slice(1) });
    else if (out.length > 0 && line.startsWith("@@")) out.at(-1)?.lines.push({ op: "@", text: line });
  }
  return out.filter((e) => e.lines.length > 0);
}

/** A simple diff: common lines at the start and end; all lines between them were replaced. */
export function diffLines(before: string[], after: string[]): { op: " " | "-" | "+"; text: string }[] {
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < shorter - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
  const as = (op: " " | "-" | "+") => (text: string) => ({ op, text });
  return [
    ...before.slice(0, head).map(as(" ")),
    ...before.slice(head, before.length - tail).map(as("-")),
    ...after.slice(head, after.length - tail).map(as("+")),
    ...before.slice(before.length - tail).map(as(" ")),
  ];
}

/** The lines that show an edit. */
export function linesOfEdit(e: Edit): Line[] {
  if (e.kind === "patch") return e.lines;
  return diffLines(e.kind === "replace" ? e.before : [], e.after);
}
