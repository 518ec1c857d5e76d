import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import type { PositionText } from "@/hooks/position-text";
import { Switcher } from "../branches/switcher";
import { Icon } from "../icons";
import { ErrorBox } from "../ui";
import { RowView } from "./row";
import type { Row, RowActions } from "./rows";

interface Props {
  rows: Row[];
  positionText: PositionText;
  actions: RowActions;
  /** The offset of the marker that can be undone. */
  newest?: number;
  selected?: string;
  onSelect: (key?: string) => void;
  isOpen: (row: Row) => boolean;
  onToggle: (row: Row) => void;
  /** New rows may appear at the end: live, or while it plays. */
  following: boolean;
  /** The events at the playhead are being loaded. */
  busy: boolean;
  /** When this offset changes, its row is scrolled into view. */
  focus?: number;
  earlier?: Earlier;
  /** Rows take little space. */
  dense?: boolean;
}

interface Earlier {
  /** The number of messages that are not loaded. */
  n: number;
  load: () => void;
  busy: boolean;
  /** Why the last attempt failed. */
  error?: unknown;
}

const estimatedHeights: Record<Row["kind"], number> = {
  message: 96,
  tool: 46,
  end: 40,
  ask: 120,
  retry: 32,
  jump: 56,
  gap: 36,
};

export function Conversation(p: Props) {
  const { rows, following } = p;
  const scroller = useRef<HTMLElement>(null);
  const [atEnd, setAtEnd] = useState(true);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: (i) => estimatedHeights[rows[i]?.kind ?? "message"],
    getItemKey: (i) => rows[i]?.key ?? i,
    anchorTo: "end",
    followOnAppend: true,
    scrollEndThreshold: 80,
    overscan: 1,
    paddingStart: 12,
    paddingEnd: 16,
  });
  const unseen = useUnseen(rows, atEnd);
  const stick = atEnd && following;
  const total = virtual.getTotalSize();

  // The last row grows while it streams: stay at the end if the user was there.
  // biome-ignore lint/correctness/useExhaustiveDependencies: with each change of the rows
  useLayoutEffect(() => {
    if (stick && rows.length > 0) virtual.scrollToEnd();
  }, [rows, stick, total]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: only when the focus changes
  useEffect(() => {
    if (p.focus === undefined || rows.length === 0) return;
    const i = rows.findLastIndex((r) => r.offset < (p.focus ?? 0));
    if (i >= 0) virtual.scrollToIndex(i, { align: "end" });
  }, [p.focus]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: only when the selection changes
  useEffect(() => {
    const i = rows.findIndex((r) => r.key === p.selected);
    if (i >= 0) virtual.scrollToIndex(i, { align: "auto" });
  }, [p.selected]);

  const toEnd = () => {
    virtual.scrollToEnd();
    setAtEnd(true);
  };
  return (
    <div className="relative min-h-0 flex-1">
      <section
        ref={scroller}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard
        tabIndex={0}
        aria-label="Conversation"
        aria-busy={p.busy || undefined}
        data-dense={p.dense || undefined}
        className="h-full overflow-y-auto [overflow-anchor:none]"
        onScroll={(e) => {
          const el = e.currentTarget;
          setAtEnd(el.scrollHeight - el.scrollTop - el.clientHeight < 80);
        }}
      >
        {p.earlier && <EarlierMessages {...p.earlier} />}
        <ol className="relative mx-auto max-w-4xl" style={{ height: total }}>
          {virtual.getVirtualItems().map((v) => {
            const row = rows[v.index];
            if (!row) return null;
            return (
              <li
                key={v.key}
                data-index={v.index}
                aria-setsize={rows.length}
                aria-posinset={v.index + 1}
                ref={virtual.measureElement}
                className="absolute inset-x-0 px-4"
                style={{ transform: `translateY(${v.start}px)` }}
              >
                <Switcher row={row.key} />
                <RowView
                  row={row}
                  positionText={p.positionText}
                  actions={p.actions}
                  newest={p.newest}
                  selected={row.key === p.selected}
                  open={p.isOpen(row)}
                  onToggle={p.onToggle}
                  onSelect={p.onSelect}
                />
                <Switcher row={row.key} below />
              </li>
            );
          })}
        </ol>
      </section>
      {!atEnd && following && (
        <button
          type="button"
          onClick={toEnd}
          className="absolute bottom-3 left-1/2 flex -translate-x-1/2 items-center gap-1.5 rounded-full border border-line bg-panel px-3 py-1.5 text-[13px] font-medium shadow-lg hover:bg-raised"
        >
          <Icon name="down" className="size-3.5" /> Jump to latest{unseen > 0 ? ` (${unseen} new)` : ""}
        </button>
      )}
    </div>
  );
}

/** The number of new rows since the user scrolled up. */
function useUnseen(rows: Row[], atEnd: boolean): number {
  const last = rows.at(-1)?.offset ?? -1;
  const seen = useRef(last);
  useEffect(() => {
    if (atEnd || last < seen.current) seen.current = last;
  }, [atEnd, last]);
  if (atEnd) return 0;
  let n = 0;
  for (let i = rows.length - 1; i >= 0 && (rows[i] as Row).offset > seen.current; i--) n++;
  return n;
}

export function EarlierMessages({ n, load, busy, error }: Earlier) {
  if (error !== undefined)
    return (
      <div className="mx-auto max-w-4xl px-4 pt-2">
        <ErrorBox error={error} onRetry={load} />
      </div>
    );
  return (
    <div className="flex justify-center p-2">
      <button
        type="button"
        disabled={busy}
        onClick={load}
        className="rounded-md px-3 py-1 text-[13px] text-accent hover:underline disabled:opacity-50"
      >
        {busy ? "Loading…" : `Load earlier messages (${n})`}
      </button>
    </div>
  );
}
