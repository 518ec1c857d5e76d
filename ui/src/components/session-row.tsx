import { Link } from "@tanstack/react-router";
import { hasOpenRun, type SearchHit } from "@tapedeck/client";
import { archived, has, starred, tagsOf } from "@/hooks/labels";
import { type Listed, lastActive, type SessionListRow } from "@/hooks/sessions";
import { useNow } from "@/hooks/tick";
import { brief, clock, dollars, plural, short, since, withoutMarks } from "./format";
import { Icon } from "./icons";
import { Menu, type MenuItem } from "./menu";
import { columns } from "./session-columns";
import { Snippet } from "./snippet";
import { StatusChip } from "./status";
import { cell, row } from "./table-roles";
import { Tag } from "./tag";

/** The length of a recording. While a run is open, it grows. */
export function lengthText({ summary, status, head }: Listed, now: number): string {
  if (!summary) return "";
  if (summary.axis === "events") return summary.updated_at ? plural(head, "event") : "–";
  const open = hasOpenRun(status) ? Math.max(0, now - Date.parse(summary.updated_at ?? "") || 0) : 0;
  return clock(summary.recording_ms + open);
}

interface Props {
  row: SessionListRow;
  selected: boolean;
  marked: boolean;
  onMark: () => void;
  items: MenuItem[];
  /** The row takes part in the order of Tab; in the others, arrow keys reach the controls. */
  inTabOrder: boolean;
}

/** A session: a row with columns, and on a narrow page a card. */
export function SessionRow({ row: listed, selected, marked, onMark, items, inTabOrder }: Props) {
  const { session: s, depth } = listed;
  const live = hasOpenRun(s.status);
  const now = useNow(live ? 1000 : 30_000);
  const tabIndex = inTabOrder ? undefined : -1;
  const sum = s.summary;
  const failed = sum?.tools_failed ?? 0;
  const number = "hidden text-right text-[13px] tabular-nums";
  return (
    <div
      {...row}
      data-session={s.id}
      className={`grid h-[108px] grid-cols-[2.75rem_minmax(0,1fr)_2.75rem] items-center border-b border-l-2 border-line sm:h-[56px] sm:gap-3 sm:pr-3 sm:pl-2 ${columns} hover:bg-panel ${selected ? "border-l-accent bg-panel" : "border-l-transparent"}`}
    >
      <span {...cell} className="flex self-stretch max-sm:row-span-2">
        <label className="flex min-h-11 w-full items-start justify-center pt-3.5 sm:items-center sm:pt-0">
          <input
            type="checkbox"
            tabIndex={tabIndex}
            checked={marked}
            onChange={onMark}
            aria-label={`Mark ${s.title || s.id}`}
          />
        </label>
      </span>
      <span {...cell} className="flex items-center justify-between gap-2 max-sm:h-11">
        <StatusChip status={s.status ?? "idle"} />
        <span className="text-[13px] text-muted sm:hidden">{since(lastActive(s), now)}</span>
      </span>
      <span
        {...cell}
        className="min-w-0 max-sm:col-span-2 max-sm:pr-4 max-sm:col-start-2 max-sm:row-start-2"
        style={depth > 0 ? { paddingLeft: Math.min(depth, 6) * 20 } : undefined}
      >
        <TitleLink s={s} tabIndex={tabIndex} depth={depth} />
        {sum && (
          <span className="block truncate pb-2 text-xs text-muted tabular-nums sm:hidden">
            {[
              lengthText(s, now),
              sum.model || s.agent,
              sum.tokens_used > 0 && `${short(sum.tokens_used)} tokens`,
              sum.cost_usd !== undefined && dollars(sum.cost_usd),
            ]
              .filter(Boolean)
              .join(" · ")}
            {failed > 0 && <span className="text-bad"> · ✕ {failed} failed</span>}
          </span>
        )}
      </span>
      <span {...cell} className="hidden min-w-0 text-[13px] text-muted lg:block">
        <span className="block truncate">{s.agent}</span>
        <span className="block truncate text-xs" title={sum?.model}>
          {sum?.model}
        </span>
      </span>
      <span {...cell} className={`${number} text-muted sm:block`} title={lastActive(s)}>
        {since(lastActive(s), now)}
      </span>
      <span {...cell} className={`${number} whitespace-nowrap sm:block`}>
        {lengthText(s, now)}
      </span>
      <span {...cell} className={`${number} lg:block`}>
        {sum && sum.tokens_used > 0 ? short(sum.tokens_used) : ""}
      </span>
      <span {...cell} className={`${number} lg:block`}>
        {sum?.cost_usd === undefined ? "" : dollars(sum.cost_usd)}
      </span>
      <span
        {...cell}
        className={`${number} text-bad lg:block`}
        title={failed > 0 ? `${failed} of ${plural(sum?.tool_calls ?? 0, "tool call")} failed` : undefined}
      >
        {failed > 0 && `✕ ${failed}`}
      </span>
      <span {...cell} className="max-sm:col-start-3 max-sm:row-start-1">
        {items.length > 0 && (
          <Menu label={`More for ${s.title || s.id}`} items={items} tabIndex={tabIndex} className="max-sm:size-11" />
        )}
      </span>
    </div>
  );
}

function TitleLink({ s, tabIndex, depth }: { s: Listed; tabIndex?: number; depth: number }) {
  const said = s.summary?.last_message;
  return (
    <Link
      to="/s/$id"
      params={{ id: s.id }}
      tabIndex={tabIndex}
      search={s.agent === "workflow" ? { view: "workflow" } : {}}
      className="block py-1"
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
        <span dir="auto" className={`truncate ${s.title ? "" : "text-muted"}`}>
          {s.title || "Untitled session"}
        </span>
      </span>
      <span className="block truncate text-xs text-muted">
        <span className="font-mono">{s.id}</span>
        {s.closed && " · closed"}
        {has(s, archived) && " · archived"}
        {s.parent && ` · ${s.copy ? "copy" : "fork"}${depth > 0 ? "" : ` of ${s.parent}`} at ${s.fork_at ?? 0}`}
        {tagsOf(s).map((t) => (
          <Tag key={t} name={t} />
        ))}
        {said && ` · ${said.role === "user" ? "You: " : ""}${brief(withoutMarks(said.text.slice(0, 640)), 160)}`}
      </span>
    </Link>
  );
}

/** The places of a session in which the searched text is, below its row. */
export function HitRow({ hits, inTabOrder }: { hits: SearchHit[]; inTabOrder: boolean }) {
  return (
    <div {...row} className="border-b border-line bg-panel pb-1 pl-11 sm:pl-[12.5rem]">
      <span {...cell} className="block">
        {hits.slice(0, maxHits).map((h) => (
          <Link
            key={`${h.offset} ${h.kind}`}
            to="/s/$id"
            params={{ id: h.session }}
            search={{ at: h.offset + 1 }}
            tabIndex={inTabOrder ? undefined : -1}
            aria-label={`${h.role || h.kind} at ${h.offset}: ${h.snippet.replace(/[«»]/g, "")}`}
            className="flex h-8 items-center gap-2 truncate text-[13px] max-sm:h-11 hover:bg-raised"
          >
            <span className="w-16 shrink-0 truncate text-xs text-muted">{h.role || h.kind}</span>
            <span className="truncate">
              <Snippet text={h.snippet} />
            </span>
            {h.rewound && <span className="text-xs text-warn">rewound</span>}
          </Link>
        ))}
        {hits.length > maxHits && (
          <span className="block h-6 text-xs text-muted">{hits.length - maxHits} more in this session</span>
        )}
      </span>
    </div>
  );
}

const maxHits = 3;

/** The height of the hits of a session in pixels. */
export function hitsHeight(n: number, narrow: boolean): number {
  if (n === 0) return 0;
  return Math.min(n, maxHits) * (narrow ? 44 : 32) + (n > maxHits ? 24 : 0) + 5;
}
