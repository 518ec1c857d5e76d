import type { ToolCall } from "@tapedeck/client";
import { memo } from "react";
import { type Language, languageOfFile } from "../code/language";
import { brief, duration } from "../format";
import { Icon } from "../icons";
import { Plain, pretty } from "../json";
import { visible } from "./action";
import { EditDiff, editOf } from "./edit-diff";

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
}

export const ToolBody = memo(function ToolBody({ call, open, onToggle }: Props) {
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
      {open && <ToolDetails call={call} />}
    </div>
  );
});

function ToolDetails({ call }: { call: ToolCall }) {
  const edit = editOf(call);
  const error = call.result?.error;
  return (
    <div className="flex flex-col gap-2 border-t border-line p-2.5">
      <Part
        name={call.input === undefined ? "Arguments (incomplete or not JSON)" : "Arguments"}
        wanted={call.arguments !== "" || call.input !== undefined}
      >
        {edit ? (
          <EditDiff edit={edit} />
        ) : (
          <Plain
            text={call.input === undefined ? call.arguments : pretty(call.input)}
            label={`Arguments of ${visible(call.name)}`}
            language={call.input === undefined ? undefined : "json"}
          />
        )}
      </Part>
      <Part name="Error" wanted={error !== undefined}>
        <Plain text={error ?? ""} label={`Error of ${visible(call.name)}`} className="text-bad" />
      </Part>
      <Part name={call.status === "failed" ? "Output (failed)" : "Output"} wanted={call.result !== undefined}>
        <Plain
          text={call.result?.text || "(no output)"}
          label={`Output of ${visible(call.name)}`}
          language={outputLanguage(call)}
        />
      </Part>
      {!call.result && <p className="text-muted">{noResult[call.status] ?? "No result yet"}</p>}
    </div>
  );
}

const noResult: Record<string, string> = {
  cancelled: "The run was cancelled before a result arrived",
  interrupted: "The run was interrupted before a result arrived",
};

function Part({ name, wanted, children }: { name: string; wanted: boolean; children: React.ReactNode }) {
  if (!wanted) return null;
  return (
    <div>
      <h4 className="mb-1 text-xs font-medium text-muted">{name}</h4>
      {children}
    </div>
  );
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
  if (input && typeof input === "object" && !Array.isArray(input)) {
    const preferred = ["command", "cmd", "file_path", "path", "pattern", "query", "url", "description"];
    for (const name of preferred) if (typeof input[name] === "string") return brief(input[name]);
    const first = Object.values(input).find((v): v is string => typeof v === "string");
    if (first !== undefined) return brief(first);
  }
  return brief(call.arguments);
}
