import { defaultRangeExtractor, useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useLayoutEffect, useRef } from "react";
import { visible } from "../conversation/action";
import { brief, duration } from "../format";
import { Icon } from "../icons";
import { countText, StateChip } from "./chip";
import { kindOf } from "./model";
import type { Count, ElementState } from "./states";

/** One line of the list: an element of the diagram at the playhead. */
export interface TaskRow {
  id: string;
  title: string;
  type: string;
  depth: number;
  state: ElementState;
  agent?: string;
  isAgent: boolean;
  count: Count;
  entered: number;
  /** How long the newest activation took, or has taken until now. */
  tookMs?: number;
}

interface Props {
  rows: TaskRow[];
  selected?: string;
  /** byKey: with Enter or Space, not with a pointer. */
  onSelect: (id: string, byKey: boolean) => void;
}

/**
 * All elements, for keyboards, screen readers and small screens. Up and Down go from line to line.
 * A diagram may have many thousands of them: only the lines in view are in the page.
 */
export function TaskList({ rows, selected, onSelect }: Props) {
  const list = useRef<HTMLDivElement>(null);
  const place = (id: string | undefined) => (id === undefined ? -1 : rows.findIndex((r) => r.id === id));
  const current = Math.max(0, place(selected));
  const active = rows.findIndex((r) => r.state === "active");
  const now = active >= 0 ? active : rows.findIndex((r) => r.state === "waiting");
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => list.current,
    estimateSize: () => 36,
    getItemKey: (i) => rows[i]?.id ?? i,
    overscan: 8,
    // The line that Tab reaches is always there.
    rangeExtractor: (range) =>
      [...new Set([...defaultRangeExtractor(range), current])].filter((i) => i < rows.length).sort((a, b) => a - b),
  });
  // The list follows what is active, unless somebody has scrolled away from it.
  const follows = useRef(true);
  const nowId = rows[now]?.id;
  // biome-ignore lint/correctness/useExhaustiveDependencies: it scrolls when another element is active
  useLayoutEffect(() => {
    if (follows.current && nowId !== undefined) virtual.scrollToIndex(place(nowId));
  }, [nowId]);
  const onKey = (e: KeyboardEvent) => {
    const from = place((document.activeElement as HTMLElement | null)?.dataset.task);
    const to = { ArrowDown: from + 1, ArrowUp: from - 1, Home: 0, End: rows.length - 1 }[e.key];
    if (from < 0 || to === undefined) return;
    e.preventDefault();
    const at = Math.max(0, Math.min(rows.length - 1, to));
    virtual.scrollToIndex(at);
    focusLine(list.current, rows[at]?.id);
  };
  return (
    <section aria-label="Tasks" className="flex min-h-0 flex-col">
      <h2 className="flex shrink-0 items-baseline gap-2 border-b border-line px-4 py-1.5 text-xs font-semibold text-muted">
        Tasks and events
        <span className="font-normal tabular-nums">
          {rows.filter((r) => r.state === "completed").length} of {rows.length} done
        </span>
      </h2>
      <div
        ref={list}
        onScroll={() => {
          const { startIndex, endIndex } = virtual.range ?? { startIndex: 0, endIndex: 0 };
          follows.current = now < 0 || (now >= startIndex && now <= endIndex);
        }}
        className="min-h-0 flex-1 overflow-y-auto py-1"
      >
        <ol onKeyDown={onKey} className="relative" style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map((v) => {
            const r = rows[v.index];
            return (
              r && (
                <li
                  key={v.key}
                  ref={virtual.measureElement}
                  data-index={v.index}
                  aria-setsize={rows.length}
                  aria-posinset={v.index + 1}
                  className="absolute inset-x-0"
                  style={{ transform: `translateY(${v.start}px)` }}
                >
                  <Line row={r} tab={v.index === current} selected={r.id === selected} onSelect={onSelect} />
                </li>
              )
            );
          })}
        </ol>
      </div>
    </section>
  );
}

/** Focuses a line as soon as it is in the page. */
function focusLine(list: HTMLElement | null, id: string | undefined, tries = 5): void {
  if (!list || id === undefined) return;
  const line = list.querySelector<HTMLElement>(`[data-task="${CSS.escape(id)}"]`);
  if (line) line.focus();
  else if (tries > 0) requestAnimationFrame(() => focusLine(list, id, tries - 1));
}

interface LineProps {
  row: TaskRow;
  /** Tab reaches this one. */
  tab: boolean;
  selected: boolean;
  onSelect: Props["onSelect"];
}

function Line({ row: r, tab, selected, onSelect }: LineProps) {
  return (
    <button
      type="button"
      data-task={r.id}
      tabIndex={tab ? 0 : -1}
      aria-pressed={selected}
      onClick={(e) => onSelect(r.id, e.detail === 0)}
      className={`grid min-h-9 w-full grid-cols-[6.5rem_minmax(0,1fr)_auto] items-center gap-x-3 border-l-2 px-4 py-1 text-left text-[13px] hover:bg-raised max-sm:min-h-12 max-sm:grid-cols-[minmax(0,1fr)_auto] ${selected ? "border-accent bg-raised" : "border-transparent"}`}
    >
      <span className="max-sm:order-2 max-sm:justify-self-end">
        <StateChip state={r.state} />
      </span>
      <span className="min-w-0" style={{ paddingLeft: Math.min(r.depth, 6) * 16 }}>
        <span className="block truncate font-medium">{visible(r.title)}</span>
        <span className="block truncate text-xs text-muted sm:hidden">
          {about(r)}
          <Counts row={r} />
        </span>
      </span>
      <span className="flex items-center gap-3 text-xs text-muted tabular-nums max-sm:hidden">
        <span className="truncate max-xl:hidden">{about(r)}</span>
        <Counts row={r} />
        <span className="min-w-14 text-right whitespace-nowrap">{duration(r.tookMs)}</span>
      </span>
    </button>
  );
}

function about(r: TaskRow): string {
  const kind = r.agent ? `${kindOf(r.type)}, ${brief(visible(r.agent), 40)}` : kindOf(r.type);
  return r.entered > 1 ? `${kind} · ${r.entered}×` : kind;
}

function Counts({ row: r }: { row: TaskRow }) {
  if (!r.isAgent) return null;
  return (
    <span className="ml-2 inline-flex items-center gap-1" title={countText(r.count)}>
      <span className="sr-only">{countText(r.count)}</span>
      <span aria-hidden="true" className="inline-flex items-center gap-1">
        <Icon name="chat" className="size-3" /> {r.count.messages}
        <Icon name="tool" className="ml-1 size-3" /> {r.count.calls}
      </span>
    </span>
  );
}
