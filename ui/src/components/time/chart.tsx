import { Link } from "@tanstack/react-router";
import { hasOpenRun, type SessionEntry } from "@tapedeck/client";
import { type PointerEvent, useEffect, useMemo, useRef, useState } from "react";
import { useTheme } from "@/hooks/theme";
import { duration, timeOfDay } from "../format";
import { statusLabel } from "../status";
import { useIndexes } from "./indexes";
import {
  type AgentLane,
  agentLanes,
  type Bar,
  barAt,
  heightOf,
  inRange,
  minBarWidth,
  moved,
  type Range,
  rowHeight,
  topOf,
  zoomed,
} from "./layout";
import { paint } from "./paint";

interface Props {
  sessions: SessionEntry[];
  range: Range;
  now: number;
  selected?: string;
  marked: string[];
  onRange: (r: Range) => void;
  onOpen: (id: string) => void;
}

/** The limit of sessions that are links, for the keyboard. All sessions are drawn. */
const maxLinks = 100;
const labelWidth = 120;

export function Chart({ sessions, range, now, selected, marked, onRange, onOpen }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const scroller = useRef<HTMLElement>(null);
  const { width, height, scrolled } = useSize(scroller);
  const theme = useTheme();
  const perPixel = (range.to - range.from) / Math.max(1, width);
  // Running sessions grow: update the layout every few pixels, not with each tick of the clock.
  const layoutNow = Math.ceil(now / Math.max(1000, perPixel * 4)) * Math.max(1000, perPixel * 4);
  const lanes = useMemo(() => agentLanes(sessions, layoutNow, perPixel), [sessions, layoutNow, perPixel]);
  const shown = useMemo(
    () => lanes.flatMap((l) => inRange(l, range, perPixel).map((bar) => ({ lane: l, bar }))),
    [lanes, range, perPixel],
  );
  const indexes = useIndexes(
    shown.filter(({ bar }) => (bar.to - bar.from) / perPixel > 80).map(({ bar }) => bar.session),
  );
  const [hover, setHover] = useState<{ bar: Bar; x: number; y: number }>();

  // biome-ignore lint/correctness/useExhaustiveDependencies: theme and size change the drawing
  useEffect(() => {
    if (canvas.current) paint(canvas.current, { lanes, range, now, scrolled, selected, marked, indexes });
  }, [lanes, range, now, scrolled, selected, marked, indexes, theme, width, height]);
  useWheel(scroller, range, onRange);

  const at = (e: PointerEvent | React.MouseEvent) => {
    const box = scroller.current?.getBoundingClientRect();
    if (!box) return undefined;
    const x = e.clientX - box.left - labelWidth;
    const y = e.clientY - box.top + scrolled;
    const bar = x < 0 ? undefined : barAt(lanes, range.from + x * perPixel, y, perPixel);
    return bar && { bar, x: x + labelWidth, y };
  };
  const drag = useDrag(scroller, range, perPixel, onRange);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: keyboard users have a link for each bar
    <section
      ref={scroller}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard
      tabIndex={0}
      aria-label="Sessions in time"
      className="relative min-h-0 flex-1 touch-none overflow-y-auto select-none"
      onPointerDown={drag.down}
      onPointerMove={(e) => {
        drag.move(e);
        setHover(drag.dragging() ? undefined : at(e));
      }}
      onPointerUp={drag.up}
      onPointerCancel={drag.up}
      onPointerLeave={() => setHover(undefined)}
      onClickCapture={(e) => {
        if (!drag.moved()) return;
        e.preventDefault(); // a drag, not a click
        e.stopPropagation();
      }}
      onClick={(e) => {
        const hit = e.target instanceof HTMLElement && e.target.closest("a") ? undefined : at(e);
        if (hit) onOpen(hit.bar.session.id);
      }}
    >
      <div className="relative" style={{ height: Math.max(height, heightOf(lanes)) }}>
        <canvas
          ref={canvas}
          className="sticky top-0 block"
          style={{ marginLeft: labelWidth, width: `calc(100% - ${labelWidth}px)`, height }}
        />
        {lanes.map((l) => (
          <h2
            key={l.agent}
            className="absolute left-0 truncate border-r border-line bg-bg px-3 py-1.5 text-[13px] font-medium"
            style={{ top: l.top, width: labelWidth, height: l.rows * rowHeight + 11 }}
            title={l.agent || "No agent"}
          >
            {l.agent || <span className="text-muted">No agent</span>}
          </h2>
        ))}
        <Links shown={shown} range={range} perPixel={perPixel} selected={selected} now={now} width={width} />
        {hover && <Hint {...hover} now={now} right={hover.x > width / 2} />}
      </div>
    </section>
  );
}

interface LinksProps {
  shown: { lane: AgentLane; bar: Bar }[];
  range: Range;
  perPixel: number;
  selected?: string;
  now: number;
  width: number;
}

/** The sessions as links over their bars. Only one of them is a tab stop. */
function Links({ shown, range, perPixel, selected, now, width }: LinksProps) {
  const inOrder = [...shown].sort((a, b) => a.bar.from - b.bar.from);
  const chosen = inOrder.findIndex(({ bar }) => bar.session.id === selected);
  const last = chosen < 0 ? inOrder.length : Math.min(inOrder.length, chosen + maxLinks / 2);
  const part = inOrder.slice(Math.max(0, last - maxLinks), Math.max(last, maxLinks));
  const tab = chosen < 0 ? inOrder.at(-1)?.bar : inOrder[chosen]?.bar;
  return (
    <ul aria-label="Sessions" className="absolute inset-y-0 right-0 overflow-hidden" style={{ left: labelWidth }}>
      {part.map(({ lane, bar }) => {
        const left = (bar.from - range.from) / perPixel;
        const end = left + Math.max(minBarWidth, (bar.to - bar.from) / perPixel);
        return (
          <li key={bar.session.id}>
            <Link
              to="/s/$id"
              params={{ id: bar.session.id }}
              data-session={bar.session.id}
              data-keys-pass
              draggable={false}
              tabIndex={bar === tab ? 0 : -1}
              aria-label={barLabel(bar, now)}
              className="absolute rounded"
              style={{
                top: topOf(lane, bar),
                left: Math.max(0, left),
                width: Math.max(minBarWidth, Math.min(width, end) - Math.max(0, left)),
                height: rowHeight - 4,
              }}
            />
          </li>
        );
      })}
    </ul>
  );
}

/** The length of the recording of a session; "" if its events have no times. */
function lengthOf({ summary, status }: SessionEntry, now: number): string {
  if (!summary) return "";
  const since = hasOpenRun(status) ? now - Date.parse(summary.updated_at ?? "") : 0;
  const length = summary.recording_ms + Math.max(0, since || 0);
  return length > 0 ? duration(length) : "";
}

function barLabel({ session: s, from }: Bar, now: number): string {
  const words = [s.title || s.id, statusLabel(s.status ?? "idle").toLowerCase()];
  words.push(timeOfDay(new Date(from).toISOString()));
  const length = lengthOf(s, now);
  if (length) words.push(length);
  if (s.agent) words.push(s.agent);
  if (s.parent) words.push(`fork of ${s.parent}`);
  return words.join(", ");
}

function Hint({ bar, x, y, now, right }: { bar: Bar; x: number; y: number; now: number; right: boolean }) {
  const s = bar.session;
  return (
    <div
      aria-hidden="true"
      className="pointer-events-none absolute z-10 max-w-80 rounded-md border border-line bg-panel px-2 py-1 text-xs shadow-lg"
      style={{ left: x, top: y + 16, transform: right ? "translateX(-100%)" : undefined }}
    >
      <p dir="auto" className="truncate font-medium">
        {s.title || s.id}
      </p>
      <p className="text-muted">
        {statusLabel(s.status ?? "idle")} · {new Date(bar.from).toLocaleString("en-GB")}
        {lengthOf(s, now) && ` · ${lengthOf(s, now)}`}
        {s.parent && ` · fork of ${s.parent}`}
      </p>
    </div>
  );
}

function useSize(ref: React.RefObject<HTMLElement | null>) {
  const [size, set] = useState({ width: 1000, height: 400, scrolled: 0 });
  useEffect(() => {
    const el = ref.current;
    if (!el) return;
    const look = () => set({ width: el.clientWidth - labelWidth, height: el.clientHeight, scrolled: el.scrollTop });
    look();
    const watch = new ResizeObserver(look);
    watch.observe(el);
    el.addEventListener("scroll", look, { passive: true });
    return () => {
      watch.disconnect();
      el.removeEventListener("scroll", look);
    };
  }, [ref]);
  return size;
}

/** The wheel zooms around the pointer. A sideways wheel, or the wheel with Shift, moves the range. */
function useWheel(ref: React.RefObject<HTMLElement | null>, range: Range, onRange: (r: Range) => void): void {
  const latest = useRef({ range, onRange });
  latest.current = { range, onRange };
  useEffect(() => {
    const el = ref.current;
    if (!el) return;
    const onWheel = (e: WheelEvent) => {
      e.preventDefault();
      const { range: r, onRange: setRange } = latest.current;
      const box = el.getBoundingClientRect();
      const wide = Math.max(1, box.width - labelWidth);
      if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
        setRange(moved(r, (e.deltaX || e.deltaY) / wide));
        return;
      }
      const about = Math.min(1, Math.max(0, (e.clientX - box.left - labelWidth) / wide));
      setRange(zoomed(r, Math.exp(e.deltaY * 0.0015), about));
    };
    el.addEventListener("wheel", onWheel, { passive: false }); // React's wheel listeners are passive
    return () => el.removeEventListener("wheel", onWheel);
  }, [ref]);
}

/** Dragging moves the range, and scrolls the lanes if not all fit. */
function useDrag(
  ref: React.RefObject<HTMLElement | null>,
  range: Range,
  perPixel: number,
  onRange: (r: Range) => void,
) {
  const began = useRef<{ x: number; y: number; range: Range; top: number }>(undefined);
  const far = useRef(false);
  return {
    down: (e: PointerEvent) => {
      if (e.button !== 0) return;
      far.current = false;
      began.current = { x: e.clientX, y: e.clientY, range, top: ref.current?.scrollTop ?? 0 };
    },
    move: (e: PointerEvent) => {
      const b = began.current;
      if (!b) return;
      const by = e.clientX - b.x;
      if (!far.current && Math.hypot(by, e.clientY - b.y) < 5) return;
      if (!far.current) e.currentTarget.setPointerCapture?.(e.pointerId);
      far.current = true;
      onRange({ from: Math.round(b.range.from - by * perPixel), to: Math.round(b.range.to - by * perPixel) });
      if (ref.current) ref.current.scrollTop = b.top - (e.clientY - b.y);
    },
    up: () => {
      began.current = undefined;
    },
    dragging: () => began.current !== undefined && far.current,
    moved: () => far.current,
  };
}
