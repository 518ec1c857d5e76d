import type { ToolCall } from "@tapedeck/client";
import { memo } from "react";
import { type Language, languageOfFile } from "../code/language";
import { brief, duration } from "../format";
import { Icon } from "../icons";
import { Plain, pretty } from "../json";
import { visible } from "./action";
import { CopyButton } from "./copy-button";
import { editsOf } from "./edit";
import { EditDiff } from "./edit-diff";

const marks: Record<string, [mark: string, word: string, className: string]> = {
  pending: ["◌", "pending", "text-muted"],
  running: ["●", "running", "text-run"],
  complete: ["✓", "ok", "text-ok"],
  failed: ["✕", "failed", "text-bad"],
  cancelled: ["■", "cancelled", "text-muted"],
  interrupted: ["‖", "interrupted", "text-warn"],
};

interface Props {
  call: ToolCall;
  open: boolean;
  onToggle: () => void;
  /** Shows the thread of a sub-agent that the call has started. */
  onThread?: (thread: string) => void;
}

export const ToolBody = memo(function ToolBody({ call, open, onToggle, onThread }: Props) {
  const [mark, word, colour] = marks[call.status] ?? ["•", call.status, ""];
  return (
    <div
      className={`rounded-md border ${call.status === "failed" ? "border-bad/40" : "border-line"} bg-panel text-[13px]`}
    >
      <button
        type="button"
        aria-expanded={open}
        onClick={onToggle}
        className="flex w-full items-center gap-2 rounded-md px-2.5 py-1.5 text-left hover:bg-raised"
      >
        <Icon name={open ? "down" : "forward"} className="size-3.5 text-muted" />
        <span className="shrink-0 font-mono font-medium">{visible(call.name) || "tool"}</span>
        <span className="min-w-0 flex-1 truncate font-mono text-xs text-muted">{callSummary(call)}</span>
        <span className="shrink-0 text-xs text-muted tabular-nums">{duration(call.duration_ms)}</span>
        <span className={`shrink-0 text-xs font-medium ${colour}`}>
          <span aria-hidden="true" className={call.status === "running" ? "animate-pulse" : ""}>
            {mark}
          </span>{" "}
          {word}
        </span>
      </button>
      {onThread && call.threads?.map((t) => <SubAgent key={t} thread={t} onThread={onThread} />)}
      {open && <ToolDetails call={call} />}
    </div>
  );
});

function SubAgent({ thread, onThread }: { thread: string; onThread: (thread: string) => void }) {
  return (
    <p className="border-t border-line px-2.5 py-1">
      <button type="button" className="min-h-6 text-accent hover:underline" onClick={() => onThread(thread)}>
        Show the sub-agent <span className="font-mono text-xs">{visible(thread)}</span>
      </button>
    </p>
  );
}

function ToolDetails({ call }: { call: ToolCall }) {
  const edits = editsOf(call);
  const error = call.result?.error;
  return (
    <div className="flex flex-col gap-2 border-t border-line p-2.5">
      <Part
        name={call.input === undefined ? "Arguments (incomplete or not JSON)" : "Arguments"}
        wanted={call.arguments !== "" || call.input !== undefined}
        copied={argumentsText(call)}
      >
        {edits.length === 0 && <Arguments call={call} />}
        {edits.map((e, i) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: edits have no id, and never change
          <EditDiff key={i} edit={e} />
        ))}
      </Part>
      <Part name="Error" wanted={error !== undefined} copied={error}>
        <Plain text={error ?? ""} label={`Error of ${visible(call.name)}`} className="text-bad" />
      </Part>
      <Part
        name={call.status === "failed" ? "Output (failed)" : "Output"}
        wanted={call.result !== undefined}
        copied={call.result?.text}
      >
        <Plain
          text={indented(call.result?.text ?? "") || "(no output)"}
          label={`Output of ${visible(call.name)}`}
          language={outputLanguage(call)}
        />
      </Part>
      {!call.result && <p className="text-muted">{noResult[call.status] ?? "No result yet"}</p>}
    </div>
  );
}

/** The arguments of a call: its todo list, its command, or JSON. */
function Arguments({ call }: { call: ToolCall }) {
  const label = `Arguments of ${visible(call.name)}`;
  const todos = todosOf(call);
  if (todos)
    return (
      <ul aria-label="Todo list" className="flex flex-col gap-1 rounded-md bg-raised px-3 py-2">
        {todos.map((t, i) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: entries have no id
          <li key={i} className={`flex gap-2 ${t.status === "completed" ? "text-muted line-through" : ""}`}>
            <span aria-hidden="true">{todoMarks[t.status] ?? "○"}</span>
            <span className="sr-only">{t.status.replace("_", " ")}: </span>
            <span className={t.status === "in_progress" ? "font-medium" : ""}>{visible(t.content)}</span>
          </li>
        ))}
      </ul>
    );
  const { input } = call;
  if (input === undefined) return <Plain text={call.arguments} label={label} />;
  if (!input || typeof input !== "object" || Array.isArray(input) || typeof input.command !== "string")
    return <Plain text={pretty(input)} label={label} language="json" />;
  const { command, ...others } = input;
  return (
    <div className="flex flex-col gap-2">
      <Plain text={visible(command)} label={label} language="bash" />
      {Object.keys(others).length > 0 && (
        <Plain text={pretty(others)} label={`Other arguments of ${visible(call.name)}`} language="json" />
      )}
    </div>
  );
}

const todoMarks: Record<string, string> = { completed: "☑", in_progress: "→" };

/** The entries of a todo list, if a call writes one. */
export function todosOf({ input }: ToolCall): { content: string; status: string }[] | undefined {
  const list = input && typeof input === "object" && !Array.isArray(input) ? input.todos : undefined;
  if (!Array.isArray(list)) return undefined;
  const all = list.flatMap((t) =>
    t && typeof t === "object" && !Array.isArray(t) && typeof t.content === "string"
      ? [{ content: t.content, status: typeof t.status === "string" ? t.status : "pending" }]
      : [],
  );
  return all.length === list.length && all.length > 0 ? all : undefined;
}

/** A longer text is shown as it is: to parse it would block the page. */
const maxIndented = 200_000;

/** JSON with an indent, or the text as it is. A number that is too large for JavaScript must not change. */
export function indented(text: string): string {
  if (text.length > maxIndented || !/^\s*[[{]/.test(text) || text.includes("\n") || /\d{16}/.test(text)) return text;
  try {
    return pretty(JSON.parse(text));
  } catch {
    return text;
  }
}

const noResult: Record<string, string> = {
  cancelled: "The run was cancelled before a result arrived",
  interrupted: "The run was interrupted before a result arrived",
};

interface PartProps {
  name: string;
  wanted: boolean;
  /** What its button copies; absent or empty for no button. */
  copied?: string;
  children: React.ReactNode;
}

function Part({ name, wanted, copied, children }: PartProps) {
  if (!wanted) return null;
  return (
    <div>
      <div className="mb-1 flex items-center gap-1">
        <p className="text-xs font-medium text-muted">{name}</p>
        {copied && <CopyButton text={copied} label={`Copy: ${name}`} />}
      </div>
      {children}
    </div>
  );
}

/** The text of the arguments that people want to copy: a command alone, or all of it. */
function argumentsText({ input, arguments: raw }: ToolCall): string {
  if (input === undefined) return raw;
  if (input && typeof input === "object" && !Array.isArray(input) && typeof input.command === "string")
    return input.command;
  return pretty(input);
}

/** The language of a tool's output, if known: that of the file that it read, a diff, or JSON. */
export function outputLanguage(call: ToolCall): Language | undefined {
  const text = call.result?.text ?? "";
  if (/^(diff --git |--- \S)/.test(text)) return "diff";
  const { input } = call;
  if (/read|view|cat\b/i.test(call.name) && input && typeof input === "object" && !Array.isArray(input)) {
    const path = input.file_path ?? input.path ?? input.filePath ?? input.file;
    if (typeof path === "string") return languageOfFile(path);
  }
  return /^\s*[[{][\s\S]*[\]}]\s*$/.test(text) ? "json" : undefined;
}

/** A one-line summary of a call: its most telling text argument. */
export function callSummary(call: ToolCall): string {
  const input = call.input;
  const todos = todosOf(call);
  if (todos) {
    const done = todos.filter((t) => t.status === "completed").length;
    const now = todos.find((t) => t.status === "in_progress");
    return brief(`${done} of ${todos.length} done${now ? `: ${now.content}` : ""}`);
  }
  if (input && typeof input === "object" && !Array.isArray(input)) {
    const preferred = ["command", "cmd", "file_path", "path", "pattern", "query", "url", "description"];
    for (const name of preferred) if (typeof input[name] === "string") return brief(input[name]);
    const first = Object.values(input).find((v): v is string => typeof v === "string");
    if (first !== undefined) return brief(first);
  }
  return brief(call.arguments);
}
