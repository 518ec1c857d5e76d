import { type KeyboardEvent, type PointerEvent, useState } from "react";
import { remembered } from "@/hooks/remembered";

const stored = "tapedeck-panel";
export const narrowest = 280;
export const widest = 960;
const usual = 456; // all tabs are visible
const step = 24;

/** A width within the limits; anything else is the usual one. */
export function limited(width: number): number {
  return Number.isFinite(width) ? Math.round(Math.max(narrowest, Math.min(widest, width))) : usual;
}

/** The width of the panel, which the browser remembers. */
export function usePanelWidth(): [width: number, set: (width: number) => void] {
  const [width, setWidth] = useState(() => limited(Number.parseInt(remembered.get(stored) ?? "", 10)));
  return [
    width,
    (to) => {
      remembered.set(stored, String(limited(to)));
      setWidth(limited(to));
    },
  ];
}

/** The edge of the panel: dragging it, and the arrow keys, change the width. A double click makes it the usual one. */
export function Resizer({ width, onWidth }: { width: number; onWidth: (width: number) => void }) {
  const drag = (e: PointerEvent<HTMLElement>) => {
    const edge = e.currentTarget.parentElement?.getBoundingClientRect().right;
    if (e.currentTarget.hasPointerCapture(e.pointerId) && edge !== undefined) onWidth(edge - e.clientX);
  };
  const key = (e: KeyboardEvent) => {
    const to = { ArrowLeft: width + step, ArrowRight: width - step, Home: widest, End: narrowest }[e.key];
    if (to === undefined) return;
    onWidth(to);
    e.preventDefault();
    e.stopPropagation();
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a line cannot have the focus
    <div
      role="separator"
      tabIndex={0}
      aria-label="Width of the panel"
      aria-orientation="vertical"
      aria-valuenow={width}
      aria-valuemin={narrowest}
      aria-valuemax={widest}
      onPointerDown={(e) => e.currentTarget.setPointerCapture(e.pointerId)}
      onPointerMove={drag}
      onKeyDown={key}
      onDoubleClick={() => onWidth(usual)}
      className="absolute inset-y-0 -left-1 z-10 w-2 cursor-col-resize touch-none hover:bg-accent/40 focus-visible:bg-accent max-lg:hidden"
    />
  );
}
