import { type KeyboardEvent, useRef } from "react";
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
  onSelect: (id: string) => void;
}

/** All elements, for keyboards, screen readers and small screens. Up and Down go from line to line. */
export function TaskList({ rows, selected, onSelect }: Props) {
  const list = useRef<HTMLOListElement>(null);
  const current = rows.some((r) => r.id === selected) ? selected : rows[0]?.id;
  const onKey = (e: KeyboardEvent) => {
    const lines = [...(list.current?.querySelectorAll<HTMLElement>("[data-task]") ?? [])];
    const i = lines.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: i + 1, ArrowUp: i - 1, Home: 0, End: lines.length - 1 }[e.key];
    if (i < 0 || to === undefined) return;
    e.preventDefault();
    lines[Math.max(0, Math.min(lines.length - 1, to))]?.focus();
  };
  return (
    <section aria-label="Tasks" className="flex min-h-0 flex-col">
      <h2 className="flex shrink-0 items-baseline gap-2 border-b border-line px-4 py-1.5 text-xs font-semibold text-muted">
        Tasks and events
        <span className="font-normal tabular-nums">
          {rows.filter((r) => r.state === "completed").length} of {rows.length} done
        </span>
      </h2>
      <ol ref={list} onKeyDown={onKey} className="min-h-0 flex-1 overflow-y-auto py-1">
        {rows.map((r) => (
          <li key={r.id}>
            <button
              type="button"
              data-task={r.id}
              tabIndex={r.id === current ? 0 : -1}
              aria-pressed={r.id === selected}
              onClick={() => onSelect(r.id)}
              className={`grid min-h-9 w-full grid-cols-[6.5rem_minmax(0,1fr)_auto] items-center gap-x-3 border-l-2 px-4 py-1 text-left text-[13px] hover:bg-raised max-sm:min-h-12 max-sm:grid-cols-[minmax(0,1fr)_auto] ${r.id === selected ? "border-accent bg-raised" : "border-transparent"}`}
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
                <span className="w-12 text-right">{duration(r.tookMs)}</span>
              </span>
            </button>
          </li>
        ))}
      </ol>
    </section>
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
