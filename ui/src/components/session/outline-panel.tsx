import { useVirtualizer } from "@tanstack/react-virtual";
import type { ReplayIndex, ToolCall } from "@tapedeck/client";
import { memo, useMemo, useRef } from "react";
import type { PositionText } from "@/hooks/position-text";
import { useSame } from "@/hooks/same";
import type { Hidden } from "../events/raw-events";
import { duration, plural } from "../format";
import { markOf, statusColour, statusLabel } from "../status";
import { type Turn, turnsOf } from "./outline";

interface Props {
  index: ReplayIndex | undefined;
  at: number;
  hidden: Hidden[];
  calls: ToolCall[];
  positionText: PositionText;
  onTurn: (offset: number) => void;
}

/** The turns of the session, one below the other. Only the visible ones have elements. */
export function OutlinePanel({ index, at, hidden, calls, positionText, onTurn }: Props) {
  const list = useRef<HTMLOListElement>(null);
  const known = useSame(calls);
  const turns = useMemo(() => (index ? turnsOf(index, at, hidden, known) : []), [index, at, hidden, known]);
  const virtual = useVirtualizer({
    count: turns.length,
    getScrollElement: () => list.current?.closest<HTMLElement>("[role=tabpanel]") ?? null,
    estimateSize: () => 48,
    getItemKey: (i) => turns[i]?.offset ?? i,
    overscan: 2,
  });
  if (turns.length === 0) return <p className="py-6 text-center text-muted">No turns.</p>;
  return (
    <ol ref={list} aria-label="Turns" className="relative" style={{ height: virtual.getTotalSize() }}>
      {virtual.getVirtualItems().map((v) => {
        const turn = turns[v.index];
        return (
          turn && (
            <li
              key={v.key}
              aria-setsize={turns.length}
              aria-posinset={v.index + 1}
              className="absolute inset-x-0 h-12"
              style={{ transform: `translateY(${v.start}px)` }}
            >
              <TurnLine turn={turn} positionText={positionText} onTurn={onTurn} />
            </li>
          )
        );
      })}
    </ol>
  );
}

const TurnLine = memo(function TurnLine({
  turn: t,
  positionText,
  onTurn,
}: { turn: Turn } & Pick<Props, "positionText" | "onTurn">) {
  const status = t.status ?? "idle";
  return (
    <button
      type="button"
      onClick={() => onTurn(t.offset)}
      className="flex h-12 w-full items-center gap-2 rounded-md px-1.5 text-left hover:bg-raised"
    >
      <span className="w-6 shrink-0 text-right text-xs text-muted tabular-nums">{t.n}</span>
      <span className="min-w-0 flex-1">
        <span dir="auto" className="block truncate font-medium">
          {t.title || "(no text)"}
        </span>
        <span className="block truncate text-xs text-muted tabular-nums">
          <span className={statusColour(status)}>
            <span aria-hidden="true">{markOf(status)}</span> {statusLabel(status)}
          </span>
          {t.ms !== undefined && ` · ${duration(t.ms)}`}
          {t.calls > 0 && ` · ${plural(t.calls, "call")}`}
          {t.failed > 0 && <span className="text-bad"> · {t.failed} failed</span>}
        </span>
      </span>
      <span className="shrink-0 text-xs text-muted tabular-nums">
        {positionText({ offset: t.offset, timestamp: t.startedAt })}
      </span>
    </button>
  );
});
