import type { Marker, Run } from "@tapedeck/client";
import { type KeyboardEvent, memo, type ReactNode, useCallback, useState } from "react";
import { keysAreOn } from "@/hooks/keys";
import type { PositionText } from "@/hooks/position-text";
import { brief, duration, sentence, short } from "../format";
import { Icon } from "../icons";
import { Button, IconButton } from "../ui";
import { Ask } from "./ask";
import { MessageBody, speakerOf } from "./message";
import { invocationOf, itemOf, type Row, type RowActions } from "./rows";
import { ToolBody } from "./tool";

interface Props {
  row: Row;
  positionText: PositionText;
  actions: RowActions;
  newest?: number;
  selected: boolean;
  open: boolean;
  onToggle: (row: Row) => void;
  onSelect: (key?: string) => void;
}

export const RowView = memo(function RowView(p: Props) {
  const { row } = p;
  switch (row.kind) {
    case "gap":
      return <Rule>{duration(row.ms)} idle</Rule>;
    case "jump":
      return <JumpRow {...p} />;
    case "retry":
      return <RetryRow {...p} />;
    case "end":
      return <RunEnd run={row.run} onAgain={p.actions.onAgain} />;
    default:
      return <ItemRow {...p} />;
  }
});

function ItemRow(p: Props) {
  const { row } = p;
  const began = itemOf(row)?.started_at;
  const [active, setActive] = useState(false);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: j and k select
    // biome-ignore lint/a11y/noStaticElementInteractions: as above
    <div
      data-offset={row.offset}
      onClick={() => p.onSelect(row.key)}
      onPointerEnter={() => setActive(true)}
      onPointerLeave={() => setActive(false)}
      onFocus={() => setActive(true)}
      onBlur={(e) => !e.currentTarget.contains(e.relatedTarget) && setActive(false)}
      className={`group relative grid grid-cols-[3.5rem_1fr] gap-x-2 rounded-md border-l-2 py-1.5 pr-1 pl-2 dense:py-0.5 ${p.selected ? "border-accent bg-accent-soft/40" : "border-transparent"}`}
    >
      <span className="pt-0.5 text-right text-xs text-muted tabular-nums">
        {began ? p.positionText({ offset: row.offset, timestamp: began }) : ""}
      </span>
      <div className="min-w-0">
        {row.kind === "message" && row.message.role !== "reasoning" && (
          <p className="text-xs font-semibold text-muted">
            {speakerOf(row.message)}
            {row.message.thread !== "main" && <span className="ml-2 font-normal">in {row.message.thread}</span>}
          </p>
        )}
        {row.kind === "ask" && row.permission.thread !== "main" && (
          <p className="text-xs text-muted">in {row.permission.thread}</p>
        )}
        <Body {...p} />
      </div>
      <Actions {...p} all={active || p.selected} />
    </div>
  );
}

function Body({ row, open, onToggle, actions }: Props) {
  const toggle = useCallback(() => onToggle(row), [onToggle, row]);
  if (row.kind === "message") return <MessageBody message={row.message} open={open} onToggle={toggle} />;
  if (row.kind === "tool")
    return <ToolBody call={row.call} open={open} onToggle={toggle} onThread={actions.onThread} />;
  return row.kind === "ask" ? <Ask permission={row.permission} onAnswer={actions.onAnswer} /> : null;
}

/** The actions of a row, visible on hover, focus or selection. They do not cover the status of a tool call. */
function Actions({ row, actions, selected, all }: Props & { all: boolean }) {
  const invocation = invocationOf(row);
  const rewinds = row.kind === "message" && actions.onRewind !== undefined;
  if (!all && !rewinds) return null;
  const after = (itemOf(row)?.end_offset ?? row.offset) + 1;
  return (
    <div
      role="toolbar"
      aria-label="Actions of the row"
      onKeyDown={alongToolbar}
      className={`absolute z-10 flex ${row.kind === "tool" ? "top-[5px] right-32" : "-top-2 right-1"} rounded-md border border-line bg-panel shadow-sm ${selected ? "" : "opacity-0 group-hover:opacity-100 focus-within:opacity-100"}`}
    >
      {all && (
        <>
          {actions.onFork && (
            <IconButton
              className="size-7"
              label="Fork here"
              keys="b"
              icon="fork"
              onClick={() => actions.onFork?.(after)}
            />
          )}
          {actions.onEdit && row.kind === "message" && row.message.role === "user" && row.message.text !== "" && (
            <IconButton
              className="size-7"
              label="Edit and run again"
              icon="edit"
              onClick={() => actions.onEdit?.(row.message)}
            />
          )}
          {actions.onAgain && invocation && (
            <IconButton
              className="size-7"
              label="Run again from here with another agent"
              keys="A"
              icon="agent"
              onClick={() => actions.onAgain?.(invocation)}
            />
          )}
          <IconButton
            className="size-7"
            label="Play from here"
            icon="play"
            onClick={() => actions.onPlay(row.offset + 1)}
          />
          {actions.onLink && (
            <IconButton
              className="size-7"
              label="Copy a link to this moment"
              icon="link"
              onClick={() => actions.onLink?.(row.offset + 1)}
            />
          )}
        </>
      )}
      {/* last, so that it does not move when the others appear */}
      {rewinds && (
        <IconButton
          className="size-7"
          label={row.kind === "message" ? `Rewind to here: ${brief(row.message.text, 40)}` : "Rewind to here"}
          keys="r"
          tabIndex={all || !keysAreOn() ? undefined : -1}
          icon="rewind"
          disabledReason={actions.rewindDisabledReason?.(invocation)}
          onClick={() => actions.onRewind?.(invocation)}
        />
      )}
    </div>
  );
}

/** Arrow keys move along the buttons of a toolbar. */
function alongToolbar(e: KeyboardEvent<HTMLElement>): void {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
  if (!by) return;
  const all = [...e.currentTarget.querySelectorAll("button")];
  all.at((all.indexOf(e.target as HTMLButtonElement) + by) % all.length)?.focus();
  e.preventDefault();
}

function Rule({ children, className = "text-muted" }: { children: ReactNode; className?: string }) {
  return (
    <div className={`flex items-center gap-3 py-2 text-xs ${className}`}>
      <span className="h-px flex-1 bg-line" />
      {children}
      <span className="h-px flex-1 bg-line" />
    </div>
  );
}

const ends: Record<string, [text: string, className: string]> = {
  complete: ["✓ Run complete", "text-muted"],
  failed: ["✕ Run failed", "text-bad"],
  cancelled: ["■ Run cancelled", "text-text"],
  interrupted: ["‖ Run interrupted", "text-warn"],
};

/** The end of a run. */
function RunEnd({ run, onAgain }: { run: Run; onAgain?: RowActions["onAgain"] }) {
  const [text, colour] = ends[run.status] ?? [run.status, "text-muted"];
  const tokens = (run.usage as { totalTokens?: number } | undefined)?.totalTokens;
  return (
    <div>
      <Rule className={colour}>
        <span className="font-medium">{text}</span>
        <span className="text-muted">
          {run.duration_ms ? duration(run.duration_ms) : ""}
          {tokens ? ` · ${short(tokens)} tokens` : ""}
          {run.status === "cancelled" && run.resumable !== undefined
            ? ` · ${run.resumable ? "can be resumed" : "cannot be resumed: the agent had not begun"}`
            : ""}
        </span>
      </Rule>
      {run.error && (
        <p className="mb-2 ml-[calc(4.5rem+2px)] rounded-md border border-bad/40 bg-bad-soft px-3 py-2 text-[13px] [overflow-wrap:anywhere]">
          <span title={run.error.code ? `Code: ${run.error.code}` : undefined}>{sentence(run.error.message)}</span>
        </p>
      )}
      {run.status === "failed" && onAgain && (
        <Button look="ghost" icon="agent" className="mb-2 ml-[4rem]" onClick={() => onAgain(run.invocation)}>
          Run again with another agent
        </Button>
      )}
    </div>
  );
}

/** A run repeats a step. The earlier attempt is shown at its own time. */
function RetryRow({ row, actions }: Props) {
  if (row.kind !== "retry") return null;
  const { attempt, reason, to } = row.retry;
  return (
    <Rule>
      <span className="min-w-0 truncate" title={reason}>
        Attempt {attempt}
        {reason && ` · ${reason}`}
      </span>
      <button type="button" className="underline hover:text-text" onClick={() => actions.onSeek(to)}>
        Show the earlier one
      </button>
    </Rule>
  );
}

const jumpNames: Record<string, string> = { rewind: "Rewound", clear: "Cleared", overwrite: "Overwritten" };

/** The row of a rewind, clear, overwrite, undo or redo. The newest one has the button Undo (or Redo). */
function JumpRow({ row, newest, actions }: Props) {
  if (row.kind !== "jump") return null;
  const m = row.marker;
  if (m.kind === "fork") return <Rule>Forked here</Rule>;
  const undo = m.label === "undo";
  return (
    <div
      role="note"
      className="my-2 flex flex-wrap items-center gap-x-3 gap-y-1 rounded-md border border-dashed border-accent/60 bg-accent-soft/50 px-3 py-2 text-[13px]"
    >
      <Icon name={undo ? "undo" : "rewind"} className="text-accent" />
      <span className="min-w-48 flex-1">
        <JumpText marker={m} />
      </span>
      {!undo && (
        <Button
          look="ghost"
          onClick={() => (actions.onShowHidden ?? actions.onSeek)(m.offset)}
          title="Play back the hidden events. Nothing changes."
        >
          Show hidden
        </Button>
      )}
      {!undo && actions.onCompare && (
        <Button look="ghost" onClick={() => actions.onCompare?.(m)}>
          Compare
        </Button>
      )}
      {newest === m.offset && (
        <Button icon={undo ? "rewind" : "undo"} onClick={() => actions.onUndo()}>
          {undo ? "Redo" : "Undo"}
        </Button>
      )}
    </div>
  );
}

function JumpText({ marker: m }: { marker: Marker }) {
  const to = m.to_offset ?? 0;
  const [name, effect] =
    m.label === "undo"
      ? ["Undone", ": the reverted events are active again."]
      : m.label === "redo"
        ? ["Redone", ": the events are reverted again. The log keeps them."]
        : [
            jumpNames[m.kind] ?? m.kind,
            ` to offset ${to}: events ${to} to ${m.offset - 1} are hidden${m.thread && m.thread !== "main" ? ` in ${m.thread}` : ""}. The log keeps them.`,
          ];
  return (
    <>
      <span className="font-medium">{name}</span>
      <span className="text-muted">{effect}</span>
    </>
  );
}
