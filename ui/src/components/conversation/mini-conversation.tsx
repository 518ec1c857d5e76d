import { useEffect, useLayoutEffect, useMemo, useRef } from "react";
import { useToggled } from "@/hooks/toggled";
import { Ask } from "./ask";
import { MessageBody, speakerOf } from "./message";
import { type Parts, type Row, type RowActions, rowsOf } from "./rows";
import { ToolBody } from "./tool";

interface Props {
  parts: Parts;
  label: string;
  /** Rows before this offset are left out. */
  from?: number;
  /** No typing animation: this is playback. */
  still?: boolean;
  /** A run is active but has no output yet. */
  waiting?: boolean;
  /** Without it, permission requests cannot be answered. */
  onAnswer?: RowActions["onAnswer"];
  className?: string;
}

/** Only the newest rows are shown; the session page has all. */
const maxRows = 80;

/** A compact conversation: messages, tool calls and permission requests. */
export function MiniConversation({ parts, label, from = 0, still, waiting, onAnswer, className = "" }: Props) {
  const rows = useMemo(() => rowsOf(parts, []).filter((r) => r.offset >= from && r.kind !== "gap"), [parts, from]);
  const scroller = useRef<HTMLElement>(null);
  const list = useRef<HTMLOListElement>(null);
  const atEnd = useRef(true);
  const [open, toggle] = useToggled<string>();
  // biome-ignore lint/correctness/useExhaustiveDependencies: with each change of the rows
  useLayoutEffect(() => {
    const el = scroller.current;
    if (el && atEnd.current) el.scrollTop = el.scrollHeight;
  }, [rows, waiting]);
  useEffect(() => {
    // Rows grow after the first render: Markdown is loaded later, and the panel may become narrower.
    const [el, ol] = [scroller.current, list.current];
    if (!el || !ol || !("ResizeObserver" in globalThis)) return;
    const observer = new ResizeObserver(() => {
      if (atEnd.current) el.scrollTop = el.scrollHeight;
    });
    observer.observe(ol);
    observer.observe(el);
    return () => observer.disconnect();
  }, []);
  return (
    <section
      ref={scroller}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard
      tabIndex={0}
      aria-label={label}
      className={`overflow-y-auto px-3 py-2 text-[13px] ${still ? "still" : ""} ${className}`}
      onScroll={(e) => {
        const el = e.currentTarget;
        atEnd.current = el.scrollHeight - el.scrollTop - el.clientHeight < 60;
      }}
    >
      {rows.length > maxRows && (
        <p className="py-1 text-center text-xs text-muted">{rows.length - maxRows} earlier rows are not shown</p>
      )}
      <ol ref={list} className="flex flex-col gap-2">
        {rows.slice(-maxRows).map((r) => (
          <li key={r.key}>
            <MiniRow row={r} open={open.has(r.key)} onToggle={() => toggle(r.key)} onAnswer={onAnswer} />
          </li>
        ))}
      </ol>
      {waiting && <p className="typing-dots py-2 text-muted">The agent is working</p>}
    </section>
  );
}

const ends: Record<string, string> = {
  complete: "✓ Run complete",
  failed: "✕ Run failed",
  cancelled: "■ Run cancelled",
  interrupted: "‖ Run interrupted",
};

interface RowProps extends Pick<Props, "onAnswer"> {
  row: Row;
  open: boolean;
  onToggle: () => void;
}

function MiniRow({ row, open, onToggle, onAnswer }: RowProps) {
  switch (row.kind) {
    case "message":
      return (
        <>
          {row.message.role !== "reasoning" && (
            <p className="text-xs font-semibold text-muted">{speakerOf(row.message)}</p>
          )}
          <MessageBody message={row.message} open={open} onToggle={onToggle} />
        </>
      );
    case "tool":
      return <ToolBody call={row.call} open={open} onToggle={onToggle} />;
    case "ask":
      return <Ask permission={row.permission} onAnswer={onAnswer} />;
    case "retry":
      return <p className="text-center text-xs text-muted">Attempt {row.retry.attempt}</p>;
    case "end":
      return (
        <p className={`text-center text-xs ${row.run.status === "failed" ? "text-bad" : "text-muted"}`}>
          {ends[row.run.status] ?? row.run.status}
        </p>
      );
    default:
      return null;
  }
}
