import { useMemo, useRef } from "react";
import { type Language, languageOfFile } from "../code/language";
import { useDiffColours } from "../code/use-diff-colours";
import { visible } from "./action";
import { type Edit, linesOfEdit } from "./edit";

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
  const lines = useMemo(() => linesOfEdit(edit), [edit]);
  return (
    <>
      <p className="mb-1 font-mono text-xs [overflow-wrap:anywhere]">
        {visible(edit.path)}
        {edit.kind === "write" && <span className="font-sans text-muted"> written whole</span>}
      </p>
      <DiffLines lines={lines} label={`Changes to ${visible(edit.path)}`} language={languageOfFile(edit.path)} />
    </>
  );
}
