import { useVirtualizer } from "@tanstack/react-virtual";
import type { Envelope } from "@tapedeck/client";
import { useEffect, useRef, useState } from "react";
import type { PositionText } from "@/hooks/position-text";
import { matching, type RawFilter, useRawEvents } from "@/hooks/raw-events";
import { useSource } from "@/hooks/source";
import { useSettled } from "@/hooks/tick";
import { useToggled } from "@/hooks/toggled";
import { client } from "@/live";
import { plural } from "../format";
import { Button, ErrorBox, field, Notice } from "../ui";
import { CopyButton } from "./copy";
import { EventRow } from "./event-row";

const channels = ["chunks", "toolCalls", "agentState", "workflow", "terminal", "presence", "session"];

/** A range of reverted events, of one thread or of all. */
export interface Hidden {
  from: number;
  to: number;
  thread?: string;
}

interface Props {
  hidden: Hidden[];
  id: string;
  head: number;
  /** The playhead. */
  at: number;
  live: boolean;
  positionText: PositionText;
  filter: RawFilter;
  onFilter: (f: RawFilter) => void;
  onSeek: (at: number) => void;
}

/** The log, event by event. */
export function RawEvents({ hidden, id, head, at, live, positionText, filter, onFilter, onSeek }: Props) {
  const scroller = useRef<HTMLElement>(null);
  const [follow, setFollow] = useState(true);
  const [open, toggle] = useToggled<number>();
  const [range, setRange] = useState({ first: Math.max(0, at - 40), last: at + 40 });
  const filtered = Boolean(filter.channel || filter.type || filter.q);
  const [from, setFrom] = useState(0);
  const list = useRawEvents(id, head, { ...filter, from }, range);
  const virtual = useVirtualizer({
    count: list.count,
    getScrollElement: () => scroller.current,
    estimateSize: () => 28,
    overscan: 10,
    onChange: (v) => {
      const { startIndex: first = 0, endIndex: last = 0 } = v.range ?? {};
      setRange((r) => (r.first === first && r.last === last ? r : { first, last }));
    },
  });
  const items = virtual.getVirtualItems();
  const { startIndex: firstShown = 0, endIndex: lastSeen = -1 } = virtual.range ?? {};
  const lastShown = items.at(-1)?.index ?? 0;

  // Keep the playhead in view, unless the user has scrolled away. A first scroll may
  // have no effect because the list has not been measured. So repeat it whenever
  // the list has moved, until the place has been in view once.
  const place = Math.max(0, Math.min(at, list.count) - 1);
  const wanted = follow && !filtered && list.count > 0;
  const reached = useRef<number>(undefined);
  const inView = firstShown <= place && place <= lastSeen;
  const toPlace = () => virtual.scrollToIndex(place, { align: live ? "end" : "center" });
  const missed = wanted && !inView && reached.current !== place;
  // biome-ignore lint/correctness/useExhaustiveDependencies: it must run whenever the playhead changes, and after a missed scroll
  useEffect(() => {
    if (wanted) toPlace();
  }, [at, wanted, live, missed && `${firstShown} ${lastSeen} ${virtual.isScrolling}`]);
  useEffect(() => {
    if (wanted && inView) reached.current = place;
  }, [wanted, inView, place]);
  // Keep the playhead in view when the list gets smaller, such as when the bar appears below it.
  const listHeight = virtual.scrollRect?.height;
  const wasInView = useRef(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: it must run whenever the height changes, and only then
  useEffect(() => {
    if (wanted && wasInView.current) toPlace();
  }, [listHeight]);
  useEffect(() => {
    wasInView.current = inView;
  });
  const { more, busy } = list;
  // biome-ignore lint/correctness/useExhaustiveDependencies: more is a new function each time
  useEffect(() => {
    if (filtered && more && !busy && lastShown > list.count - 50) more();
  }, [filtered, busy, lastShown, list.count, head]);

  return (
    <div className="flex h-full min-w-0 flex-1 flex-col">
      <Filters filter={filter} onFilter={onFilter} />
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b border-line px-4 py-1 text-[13px] text-muted">
        <span role="status">
          {filtered ? plural(list.count, "matching event") : plural(head, "event")}
          {filtered && from > 0 && ` from offset ${from.toLocaleString("en")}`}
        </span>
        <label className="flex items-center gap-1.5">
          <input type="checkbox" checked={follow} onChange={(e) => setFollow(e.target.checked)} /> Follow the playhead
        </label>
        <CopyAll id={id} filter={{ ...filter, from: filtered ? from : firstShown }} />
        <GoTo
          head={head}
          onGo={(n) => {
            setFollow(false);
            setFrom(n);
            virtual.scrollToIndex(filtered ? 0 : n, { align: "start" });
          }}
        />
      </div>
      {list.error && (
        <div className="p-3">
          <ErrorBox error={list.error} />
        </div>
      )}
      <section
        ref={scroller}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard
        tabIndex={0}
        aria-label="Events"
        className="min-h-0 flex-1 overflow-auto [overflow-anchor:none]"
        onWheel={() => setFollow(false)}
      >
        {list.count === 0 && !list.busy && <Notice title={filtered ? "No matching events" : "No events yet"} />}
        <ol className="relative min-w-[44rem]" style={{ height: virtual.getTotalSize() }}>
          {items.map((v) => {
            const event = list.get(v.index);
            return (
              <li
                key={v.key}
                data-index={v.index}
                ref={virtual.measureElement}
                className="absolute inset-x-0"
                style={{ transform: `translateY(${v.start}px)` }}
              >
                {event ? (
                  <EventRow
                    id={id}
                    event={event}
                    positionText={positionText}
                    current={event.offset === at - 1}
                    ahead={event.offset >= at}
                    struck={isHidden(event, hidden)}
                    open={open.has(event.offset)}
                    onToggle={toggle}
                    onSeek={onSeek}
                  />
                ) : (
                  <div className="h-7 px-4 py-1 text-xs text-muted tabular-nums">{filtered ? "" : v.index}</div>
                )}
              </li>
            );
          })}
        </ol>
      </section>
    </div>
  );
}

/** Events of the channel session are never reverted. */
function isHidden(e: Envelope, hidden: Hidden[]): boolean {
  if (e.channel === "session") return false;
  return hidden.some(
    (h) => h.from <= e.offset && e.offset < h.to && (h.thread === undefined || h.thread === (e.thread ?? "main")),
  );
}

function Filters({ filter, onFilter }: { filter: RawFilter; onFilter: (f: RawFilter) => void }) {
  const [type, setType] = useState(filter.type ?? "");
  const [q, setQ] = useState(filter.q ?? "");
  const settled = useSettled(`${type}\n${q}`, 300);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when typing pauses
  useEffect(() => {
    if (type !== (filter.type ?? "") || q !== (filter.q ?? ""))
      onFilter({ ...filter, type: type || undefined, q: q || undefined });
  }, [settled]);
  const on = new Set((filter.channel ?? "").split(",").filter(Boolean));
  const toggle = (c: string) => {
    if (!on.delete(c)) on.add(c);
    onFilter({ ...filter, channel: [...on].join(",") || undefined });
  };
  return (
    <search aria-label="Filter events">
      <form
        onSubmit={(e) => e.preventDefault()}
        className="flex flex-wrap items-center gap-1.5 border-b border-line bg-panel px-4 py-2"
      >
        {channels.map((c) => (
          <button
            key={c}
            type="button"
            aria-pressed={on.has(c)}
            onClick={() => toggle(c)}
            className={`rounded-full border px-2 py-px text-xs ${on.has(c) ? "border-accent bg-accent-soft font-medium" : "border-line text-muted hover:text-text"}`}
          >
            {c}
          </button>
        ))}
        <input
          aria-label="Type"
          placeholder="Type"
          className={`${field} w-48`}
          value={type}
          onChange={(e) => setType(e.target.value)}
        />
        <input
          id="event-search"
          type="search"
          aria-label="Text"
          placeholder="Text"
          className={`${field} w-48`}
          value={q}
          onChange={(e) => setQ(e.target.value)}
        />
        {(filter.channel || type || q) && (
          <Button
            look="ghost"
            icon="close"
            onClick={() => {
              setType("");
              setQ("");
              onFilter({});
            }}
          >
            Clear
          </Button>
        )}
      </form>
    </search>
  );
}

/** The limit of events that are copied at once. */
const maxCopied = 1000;

/** Copies the listed events, or the request for them. */
function CopyAll({ id, filter: { channel, type, q, from } }: { id: string; filter: RawFilter }) {
  const source = useSource();
  const params = { from, limit: maxCopied, channel, type };
  const lines = async () => {
    const { events } = await source.events(id, params);
    return matching(events, { channel, q })
      .map((e) => `${JSON.stringify(e)}\n`)
      .join("");
  };
  const url = client.eventsUrl(id, params);
  return (
    <span className="flex items-center sm:ml-auto">
      <CopyButton text={lines}>Copy as NDJSON</CopyButton>
      {!source.recording && <CopyButton text={() => `curl '${url}'`}>Copy curl</CopyButton>}
    </span>
  );
}

function GoTo({ head, onGo }: { head: number; onGo: (offset: number) => void }) {
  return (
    <form
      className="flex items-center gap-1.5"
      onSubmit={(e) => {
        e.preventDefault();
        const n = Number(new FormData(e.currentTarget).get("offset"));
        if (Number.isSafeInteger(n) && n >= 0) onGo(Math.min(n, head - 1));
      }}
    >
      <label className="flex items-center gap-1.5">
        From offset <input name="offset" inputMode="numeric" className={`${field} h-6 w-20`} />
      </label>
      <Button type="submit" className="h-6">
        Go
      </Button>
    </form>
  );
}
