import { Link } from "@tanstack/react-router";
import { hasOpenRun, type ReplayIndex } from "@tapedeck/client";
import { archived, has, starred, tagsOf } from "@/hooks/labels";
import type { SessionListRow } from "@/hooks/sessions";
import { useNow } from "@/hooks/tick";
import { clock, plural, timeOfDay } from "./format";
import { Icon } from "./icons";
import { Menu, type MenuItem } from "./menu";
import { Spark, useRowIndex } from "./spark";
import { StatusChip } from "./status";
import { Tag } from "./tag";

/** The length of a recording. While a run is open, it grows. "–": its events have no times of their own. */
export function lengthText(index: ReplayIndex, now: number): string {
  const since = index.open_runs?.length ? now - Date.parse(index.last_at ?? "") : 0;
  const length = index.duration_ms + Math.max(0, since || 0);
  return length === 0 ? "–" : clock(length);
}

interface Props {
  row: SessionListRow;
  selected: boolean;
  marked: boolean;
  onMark: () => void;
  items: MenuItem[];
  /** The row takes part in the order of Tab; in the others, arrow keys reach the controls. */
  inTabOrder: boolean;
  /** The list does not scroll, so expensive parts may load. */
  still: boolean;
}

export function SessionRow({ row: { session: s, depth }, selected, marked, onMark, items, inTabOrder, still }: Props) {
  const live = hasOpenRun(s.status);
  const now = useNow(1000, live);
  const index = useRowIndex(s.id, live, still);
  const tabIndex = inTabOrder ? undefined : -1;
  return (
    <div
      data-session={s.id}
      className={`flex h-[52px] items-center gap-3 border-b border-l-2 border-line pr-3 hover:bg-panel ${selected ? "border-l-accent bg-panel" : "border-l-transparent"}`}
      style={{ paddingLeft: 8 + Math.min(depth, 6) * 24 }}
    >
      <input
        type="checkbox"
        tabIndex={tabIndex}
        checked={marked}
        onChange={onMark}
        aria-label={`Mark ${s.title || s.id}`}
      />
      <span className="w-28 shrink-0">
        <StatusChip status={s.status ?? "idle"} />
      </span>
      <Link
        to="/s/$id"
        params={{ id: s.id }}
        tabIndex={tabIndex}
        search={s.agent === "workflow" ? { view: "workflow" } : {}}
        className="min-w-0 flex-1 py-1"
        data-keys-pass
      >
        <span className="flex items-center gap-1.5 truncate font-medium">
          {s.agent === "workflow" && <Icon name="flow" className="size-3.5 text-muted" />}
          {s.parent && <Icon name="fork" className="size-3.5 text-muted" />}
          {has(s, starred) && (
            <span role="img" aria-label="Starred" className="text-warn">
              <Icon name="starred" className="size-3.5" />
            </span>
          )}
          <span className={`truncate ${s.title ? "" : "text-muted"}`}>{s.title || "Untitled session"}</span>
        </span>
        <span className="block truncate text-xs text-muted">
          <span className="font-mono">{s.id}</span>
          {s.closed && " · closed"}
          {has(s, archived) && " · archived"}
          {s.parent && ` · ${s.copy ? "copy" : "fork"}${depth > 0 ? "" : ` of ${s.parent}`} at ${s.fork_at ?? 0}`}
          {tagsOf(s).map((t) => (
            <Tag key={t} name={t} />
          ))}
        </span>
      </Link>
      <span className="hidden w-24 truncate text-[13px] text-muted lg:block">{s.agent}</span>
      <span className="hidden w-12 text-right text-[13px] text-muted tabular-nums sm:block">
        {timeOfDay(s.created_at)}
      </span>
      <span className="hidden w-16 text-right text-[13px] tabular-nums sm:block">
        {index && lengthText(index, now)}
      </span>
      <span className="hidden w-24 text-right text-[13px] text-muted tabular-nums md:block">
        {plural(s.head, "event")}
      </span>
      <span className="hidden w-44 md:block">
        <Spark index={index} />
      </span>
      {items.length > 0 && <Menu label={`More for ${s.title || s.id}`} items={items} tabIndex={tabIndex} />}
    </div>
  );
}
