import type { ToolCall } from "@tapedeck/client";
import { useMemo, useRef } from "react";
import { type Language, languageOfFile } from "../code/language";
import { useDiffColours } from "../code/use-diff-colours";

export interface Edit {
  path: string;
  before: string[];
  after: string[];
}

/** The edit that a call makes, if its arguments have the usual names. */
export function editOf(call: ToolCall): Edit | undefined {
  const i = call.input;
  if (!i || typeof i !== "object" || Array.isArray(i)) return undefined;
  const path = i.file_path ?? i.path ?? i.filePath ?? i.file;
  const before = i.old_string ?? i.oldText ?? i.old_str ?? i.old;
  const after = i.new_string ?? i.newText ?? i.new_str ?? i.new;
  if (typeof path !== "string" || typeof after !== "string" || (before !== undefined && typeof before !== "string"))
    return undefined;
  return { path, before: before ? before.split("\n") : [], after: after.split("\n") };
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

const colours = { " ": "", "-": "bg-bad-soft", "+": "bg-ok-soft", "@": "text-muted" };
const marks = { "-": "text-bad", "+": "text-ok" };

/** The hanging indent aligns wrapped text with the text, not with the sign. */
const line = "pr-3 pl-[calc(0.75rem+2ch)] -indent-[2ch] whitespace-pre-wrap [overflow-wrap:anywhere]";

/** This many lines get an element each. All other lines share one text, so that no line is left out. */
const maxLineElements = 2000;
const textOf = (lines: DiffProps["lines"]) =>
  lines.map((l) => (l.op === "@" ? l.text : `${l.op} ${l.text}`)).join("\n");

interface DiffProps {
  lines: { op: string; text: string }[];
  label: string;
  language?: Language;
}

export function DiffLines({ lines, label, language }: DiffProps) {
  const ref = useRef<HTMLDivElement>(null);
  useDiffColours(ref, lines, language);
  const rest = lines.slice(maxLineElements);
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for form fields, but a label needs a role
    <div
      ref={ref}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard
      tabIndex={0}
      role="group"
      aria-label={label}
      className="max-h-96 overflow-auto rounded-md bg-raised py-1 font-mono text-xs"
    >
      {lines.slice(0, maxLineElements).map((l, i) => (
        <div
          // biome-ignore lint/suspicious/noArrayIndexKey: lines have no id
          key={i}
          className={`${line} ${colours[l.op as keyof typeof colours] ?? ""}`}
        >
          {l.op !== "@" && <span className={`select-none ${marks[l.op as keyof typeof marks] ?? ""}`}>{l.op} </span>}
          {l.text}
        </div>
      ))}
      {rest.length > 0 && <div className="px-3 whitespace-pre-wrap [overflow-wrap:anywhere]">{textOf(rest)}</div>}
    </div>
  );
}

export function EditDiff({ edit }: { edit: Edit }) {
  const lines = useMemo(() => diffLines(edit.before, edit.after), [edit]);
  return (
    <>
      <p className="mb-1 font-mono text-xs">{edit.path}</p>
      <DiffLines lines={lines} label={`Changes to ${edit.path}`} language={languageOfFile(edit.path)} />
    </>
  );
}
