import type { Envelope } from "@tapedeck/client";
import { memo } from "react";
import type { PositionText } from "@/hooks/position-text";
import { EventDetails } from "./event-details";

interface Props {
  id: string;
  event: Envelope;
  positionText: PositionText;
  /** It is the last event before the playhead. */
  current: boolean;
  /** It is after the playhead. */
  ahead: boolean;
  /** It was reverted. */
  struck: boolean;
  open: boolean;
  onToggle: (offset: number) => void;
  onSeek: (at: number) => void;
}

export const EventRow = memo(function EventRow({
  id,
  event: e,
  positionText,
  current,
  ahead,
  struck,
  open,
  onToggle,
  onSeek,
}: Props) {
  return (
    <div
      aria-current={current || undefined}
      className={`border-l-2 ${current ? "border-accent bg-accent-soft" : "border-transparent"} ${ahead ? "text-muted" : ""}`}
    >
      <button
        type="button"
        aria-expanded={open}
        onClick={() => onToggle(e.offset)}
        className="grid h-7 w-full grid-cols-[4.5rem_5.5rem_6rem_14rem_1fr] items-center gap-2 px-3 text-left font-mono text-xs hover:bg-raised"
      >
        <span className="text-right tabular-nums">{e.offset}</span>
        <span className="text-right text-muted tabular-nums">{positionText(e, true)}</span>
        <span className="truncate text-muted">{e.channel}</span>
        <span
          className={`truncate font-medium ${/ERROR|failed/.test(e.type) ? "text-bad" : ""} ${struck ? "line-through" : ""}`}
        >
          {e.type}
          {struck && <span className="sr-only"> (reverted)</span>}
        </span>
        <span className="truncate text-muted">{preview(e)}</span>
      </button>
      {open && <EventDetails id={id} event={e} onSeek={onSeek} />}
    </div>
  );
});

function preview(e: Envelope): string {
  const text = JSON.stringify(e.data ?? {});
  return text.length > 300 ? text.slice(0, 300) : text;
}
