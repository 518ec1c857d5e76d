import type { ReplayIndex } from "@tapedeck/client";
import { type KeyboardEvent, type PointerEvent, useEffect, useMemo, useRef, useState } from "react";
import { useTheme } from "@/hooks/theme";
import { brief, clock, duration } from "../format";
import { type Axis, positionOf, type Span, smallStep, wholeSpan, zoom, zoomed } from "./axis";
import { markerKinds, markersNear, paintBar } from "./paint";

interface Props {
  index: ReplayIndex;
  axis: Axis;
  position: number;
  positions?: Float64Array;
  /** The position as text, for screen readers. */
  positionText: string;
  onSeek: (position: number) => void;
  onStart: () => void;
  onEnd: () => void;
}

/** The shortest time between two seeks of a drag. */
const dragMs = 50;

/** The limit of overlapping markers that the hint lists. */
const maxHinted = 4;

export function SeekBar({ index, axis: whole, position, positions, positionText, onSeek, onStart, onEnd }: Props) {
  const [span, setSpan] = useZoom(whole, position);
  const axis = useMemo(() => zoomed(whole, span), [whole, span]);
  const ref = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  const width = useWidth(ref);
  const [hover, setHover] = useState<number>();
  const drag = useRef({ on: false, last: 0, place: 0 }); // place: of the last seek

  // biome-ignore lint/correctness/useExhaustiveDependencies: theme and width change the drawing
  useEffect(() => {
    if (ref.current) paintBar(ref.current, { index, axis, position, positions });
  }, [index, axis, position, positions, theme, width]);

  useWheel(ref, setSpan);

  const placeOf = (e: PointerEvent) => {
    const box = e.currentTarget.getBoundingClientRect();
    return Math.min(1, Math.max(0, (e.clientX - box.left) / box.width));
  };
  const seek = (place: number) => {
    drag.current.last = performance.now();
    drag.current.place = place;
    onSeek(axis.position(place));
  };
  const onDown = (e: PointerEvent) => {
    if (e.button !== 0) return;
    drag.current.on = true;
    seek(placeOf(e));
    try {
      e.currentTarget.setPointerCapture(e.pointerId);
    } catch {
      drag.current.on = false; // the pointer is no longer active
    }
  };
  const onMove = (e: PointerEvent) => {
    setHover(placeOf(e));
    if (!drag.current.on || performance.now() - drag.current.last < dragMs) return;
    seek(placeOf(e));
  };
  const onUp = (e: PointerEvent) => {
    if (drag.current.on && placeOf(e) !== drag.current.place) seek(placeOf(e));
    drag.current.on = false;
  };
  // Not a shortcut: a slider needs its keys even if shortcuts are off.
  const onKeyDown = (e: KeyboardEvent) => {
    if (e.altKey || e.ctrlKey || e.metaKey) return;
    const by = stepOfKey(e, axis);
    if (by !== undefined) onSeek(Math.min(axis.length, Math.max(0, position + by)));
    else if (e.key === "Home") onStart();
    else if (e.key === "End") onEnd();
    else return;
    e.preventDefault();
  };
  const unit = axis.kind === "time" ? 1000 : 1;
  return (
    <div className="relative">
      <div
        role="slider"
        tabIndex={0}
        aria-label="Position in the session"
        aria-valuemin={0}
        aria-valuemax={Math.round(axis.length / unit)}
        aria-valuenow={Math.round(position / unit)}
        aria-valuetext={positionText}
        className="relative h-10 w-full cursor-pointer touch-none select-none"
        onKeyDown={onKeyDown}
        onPointerDown={onDown}
        onPointerMove={onMove}
        onPointerUp={onUp}
        onPointerLeave={() => setHover(undefined)}
      >
        <canvas ref={ref} className="absolute inset-0 h-full w-full" />
        {hover !== undefined && <Hint place={hover} width={width} axis={axis} index={index} />}
      </div>
      {span !== wholeSpan && (
        <button
          type="button"
          onClick={() => setSpan(() => wholeSpan)}
          className="absolute top-3 right-1 rounded border border-line bg-panel px-1.5 text-xs"
        >
          {Math.round(1 / (span[1] - span[0]))}× zoom: show all
        </button>
      )}
    </div>
  );
}

/** How far a key moves the playhead: as far as the shortcuts do. */
function stepOfKey(e: KeyboardEvent, { kind, length }: Axis): number | undefined {
  const small = e.shiftKey ? length / 10 : smallStep(kind);
  switch (e.key) {
    case "ArrowRight":
    case "ArrowUp":
      return small;
    case "ArrowLeft":
    case "ArrowDown":
      return -small;
    case "PageUp":
      return length / 10;
    case "PageDown":
      return -length / 10;
  }
}

/** The visible part of the bar. It follows the playhead. */
function useZoom(axis: Axis, position: number) {
  const [span, setSpan] = useState(wholeSpan);
  const place = axis.place(position);
  // The state is set only if the playhead leaves the part. React takes an effect that sets a state in
  // each frame for an endless loop, if its scheduler has no turn between 50 frames.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the user may scroll away until the playhead moves
  useEffect(() => {
    if (place < span[0] || place > span[1]) setSpan((s) => zoom(s, 0, 1, (place - s[0]) / (s[1] - s[0]) - 0.1));
  }, [position]);
  return [span, setSpan] as const;
}

/** The wheel zooms; a sideways wheel moves. A React listener is passive and could not stop the page from scrolling. */
function useWheel(ref: React.RefObject<HTMLElement | null>, set: (f: (s: Span) => Span) => void): void {
  useEffect(() => {
    const el = ref.current;
    const onWheel = (e: WheelEvent) => {
      if (e.ctrlKey) return; // the browser's own zoom
      e.preventDefault();
      const box = (e.currentTarget as HTMLElement).getBoundingClientRect();
      const place = (e.clientX - box.left) / box.width;
      if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) set((s) => zoom(s, 0, 1, e.deltaX / box.width));
      else set((s) => zoom(s, place, 1.002 ** Math.max(-400, Math.min(400, e.deltaY))));
    };
    el?.addEventListener("wheel", onWheel, { passive: false });
    return () => el?.removeEventListener("wheel", onWheel);
  }, [ref, set]);
}

function Hint({ place, width, axis, index }: { place: number; width: number; axis: Axis; index: ReplayIndex }) {
  const near = useMemo(() => markersNear(index.markers ?? [], axis, width, place * width), [index, axis, width, place]);
  const here = axis.position(place);
  const gap = axis.gaps.find((g) => g.from <= here && here < g.to);
  const skip = axis.skips.find((s) => Math.abs(axis.place(s.at) - place) * width <= 4);
  const at = near[0] ? positionOf(near[0], axis.kind) : here;
  return (
    <div
      className="pointer-events-none absolute bottom-full z-10 mb-1 max-w-80 rounded-md border border-line bg-panel px-2 py-1 text-xs whitespace-nowrap shadow-lg"
      style={{ left: `${place * 100}%`, transform: `translateX(-${place * 100}%)` }}
    >
      <span className="font-medium tabular-nums">
        {axis.kind === "time" ? clock(at, true) : `event ${Math.round(at)}`}
      </span>
      {skip && <span className="text-muted"> · {duration(skip.ms)} left out</span>}
      {near.length === 0 && gap && <span className="text-muted"> · idle for {clock(gap.ms)}</span>}
      {near.slice(0, maxHinted).map((m) => (
        <span key={`${m.kind} ${m.offset}`} className="block truncate">
          <span className="text-muted">{markerKinds[m.kind]?.[1] ?? m.kind}</span> {m.label && brief(m.label, 60)}
        </span>
      ))}
      {near.length > maxHinted && (
        <span className="block text-muted">and {near.length - maxHinted} more. Scroll to zoom.</span>
      )}
    </div>
  );
}

function useWidth(ref: React.RefObject<HTMLElement | null>): number {
  const [width, set] = useState(0);
  useEffect(() => {
    const el = ref.current;
    if (!el) return;
    const watch = new ResizeObserver(() => set(el.clientWidth));
    watch.observe(el);
    return () => watch.disconnect();
  }, [ref]);
  return width;
}
