import { useQuery } from "@tanstack/react-query";
import type { ReplayIndex } from "@tapedeck/client";
import { useEffect, useRef } from "react";
import { api } from "@/client";
import { useTheme } from "@/hooks/theme";
import { plural } from "./format";

/** The replay index of a session in a list. */
export function useRowIndex(id: string, live: boolean, wanted: boolean): ReplayIndex | undefined {
  return useQuery({
    queryKey: ["spark", id, live],
    queryFn: ({ signal }) => api.replayIndex(id, { signal }),
    enabled: wanted,
    staleTime: live ? 10_000 : Number.POSITIVE_INFINITY,
    refetchInterval: live ? 15_000 : false,
    retry: false,
  }).data;
}

/** A sparkline of a session's activity: bars for events, red for errors. */
export function Spark({ index: data }: { index: ReplayIndex | undefined }) {
  const theme = useTheme();
  const ref = useRef<HTMLCanvasElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the colours are read from the theme
  useEffect(() => {
    if (ref.current && data) paint(ref.current, data);
  }, [data, theme]);
  const errors = data?.marked?.error ?? 0;
  return (
    <span className="flex items-center gap-2">
      <canvas ref={ref} role="img" aria-label={errors ? plural(errors, "error") : "No errors"} className="h-6 w-32" />
      {errors > 0 && <span className="text-xs font-medium text-bad">✕ {errors}</span>}
    </span>
  );
}

function paint(canvas: HTMLCanvasElement, index: ReplayIndex): void {
  const g = prepareCanvas(canvas);
  if (!g) return;
  const { width, height, ctx, colour } = g;
  const columns = Math.floor(width / 3);
  const timed = index.axis === "time";
  const sums = timed ? spread(index.density?.counts ?? [], columns) : new Array<number>(columns).fill(1);
  const peak = Math.max(1, ...sums);
  ctx.fillStyle = colour("--strong");
  sums.forEach((n, i) => {
    const h = n === 0 ? 1 : 2 + (height - 8) * Math.sqrt(n / peak);
    ctx.fillRect(i * 3, height - h, 2, h);
  });
  ctx.fillStyle = colour("--bad");
  for (const m of index.markers ?? []) {
    if (m.kind !== "error") continue;
    const part = timed ? m.position_ms / index.duration_ms : m.offset / Math.max(1, index.at);
    const x = part * (columns - 1);
    ctx.fillRect(Math.floor(x) * 3, 0, 2, 4);
  }
}

/** Spreads the used part of a list over all columns, and adds up the counts of each column. */
function spread(counts: number[], columns: number): number[] {
  const used = counts.findLastIndex((n) => n > 0) + 1;
  const sums = new Array<number>(columns).fill(0);
  for (let i = 0; i < used; i++) {
    const c = Math.min(columns - 1, Math.floor((i / used) * columns));
    sums[c] = (sums[c] ?? 0) + (counts[i] ?? 0);
  }
  return sums;
}

/** Clears a canvas and matches it to the pixel density of the screen. */
export function prepareCanvas(canvas: HTMLCanvasElement) {
  const ratio = devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  if (canvas.width !== width * ratio || canvas.height !== height * ratio) {
    canvas.width = width * ratio;
    canvas.height = height * ratio;
  }
  const ctx = canvas.getContext("2d");
  if (!ctx) return null;
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.clearRect(0, 0, width, height);
  const style = getComputedStyle(document.documentElement);
  return { ctx, width, height, colour: (name: string) => style.getPropertyValue(name).trim() };
}
