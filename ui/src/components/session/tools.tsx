import { useVirtualizer } from "@tanstack/react-virtual";
import type { ToolCall } from "@tapedeck/client";
import { memo, useRef } from "react";
import type { PositionText } from "@/hooks/position-text";
import { visible } from "../conversation/action";
import { callSummary } from "../conversation/tool";
import { duration, plural } from "../format";

interface Props {
  calls: ToolCall[];
  positionText: PositionText;
  onSeek: (at: number) => void;
}

/** The loaded tool calls, newest first. Only the visible ones have elements. */
export function Tools({ calls, positionText, onSeek }: Props) {
  const list = useRef<HTMLUListElement>(null);
  const virtual = useVirtualizer({
    count: calls.length,
    getScrollElement: () => list.current?.closest<HTMLElement>("[role=tabpanel]") ?? null,
    estimateSize: () => 28,
    getItemKey: (i) => calls[calls.length - 1 - i]?.offset ?? i,
    overscan: 2,
  });
  const failed = calls.filter((c) => c.status === "failed").length;
  const took = calls.reduce((ms, c) => ms + (c.duration_ms ?? 0), 0);
  return (
    <>
      <p className="mb-2 text-xs text-muted">
        {plural(calls.length, "call")} shown: {failed} failed, {duration(took)} in total
      </p>
      <ul ref={list} className="relative" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((v) => {
          const call = calls[calls.length - 1 - v.index];
          return (
            call && (
              <li
                key={v.key}
                aria-setsize={calls.length}
                aria-posinset={v.index + 1}
                className="absolute inset-x-0 h-7"
                style={{ transform: `translateY(${v.start}px)` }}
              >
                <Line call={call} positionText={positionText} onSeek={onSeek} />
              </li>
            )
          );
        })}
      </ul>
    </>
  );
}

const marks: Record<string, [mark: string, className: string]> = {
  failed: ["✕", "text-bad"],
  complete: ["✓", "text-muted"],
  running: ["●", "text-run"],
  cancelled: ["■", "text-muted"],
  interrupted: ["‖", "text-warn"],
};

const Line = memo(function Line({
  call,
  positionText,
  onSeek,
}: { call: ToolCall } & Pick<Props, "positionText" | "onSeek">) {
  const [mark, colour] = marks[call.status] ?? ["◌", "text-muted"];
  return (
    <button
      type="button"
      onClick={() => onSeek((call.end_offset ?? call.offset) + 1)}
      className="flex w-full items-baseline gap-2 rounded px-1.5 py-1 text-left font-mono text-xs font-medium hover:bg-raised"
    >
      <span className={`w-3 shrink-0 ${colour}`} title={call.status}>
        {mark}
      </span>
      {visible(call.name)}
      <span className="min-w-0 flex-1 truncate font-normal text-muted">{callSummary(call)}</span>
      <span className="shrink-0 font-sans font-normal text-muted tabular-nums">
        {positionText({ offset: call.offset, timestamp: call.started_at })}
      </span>
    </button>
  );
});
