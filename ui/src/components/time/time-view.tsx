import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { useKeys } from "@/hooks/keys";
import type { useSessions } from "@/hooks/sessions";
import { useNow, useSettled } from "@/hooks/tick";
import { Button, IconButton } from "../ui";
import { Chart } from "./chart";
import { fitRange, moved, type Range, spanOf, zoomed } from "./layout";

interface Props {
  list: ReturnType<typeof useSessions>;
  /** The range in the URL. */
  urlRange?: Range;
  onRange: (r: Range | undefined) => void;
  marked: string[];
  onMark: (id: string) => void;
  onOpen: (id: string) => void;
  empty: ReactNode;
}

/** The sessions on a timeline, with a lane for each agent. */
export default function TimeView({ list, urlRange, onRange, marked, onMark, onOpen, empty }: Props) {
  const now = useNow(1000);
  const { rows, hasNextPage, isFetchingNextPage, fetchNextPage } = list;
  const first = list.data?.pages[0]?.sessions;
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when the first page changes
  const fit = useMemo(() => fitRange(first ?? [], now), [first]);
  const [range, setRange] = useRange(urlRange, fit, onRange);

  // Pages are newest first: the range is complete when the last page is wholly before it.
  const last = list.data?.pages.at(-1)?.sessions ?? [];
  const reached = Math.max(...last.map((s) => spanOf(s, now).from));
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage && reached > range.from) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage, reached, range.from]);

  const [selected, select] = useState<string>();
  const inOrder = useMemo(() => [...rows].sort((a, b) => spanOf(a, 0).from - spanOf(b, 0).from), [rows]);
  const walk = (by: number) => {
    const i = inOrder.findIndex((s) => s.id === selected);
    const to = inOrder[i < 0 ? inOrder.length - 1 : Math.max(0, Math.min(inOrder.length - 1, i + by))];
    if (!to) return;
    select(to.id);
    const at = spanOf(to, now).from;
    const length = range.to - range.from;
    if (at < range.from || at > range.to)
      setRange({ from: Math.round(at - length / 2), to: Math.round(at + length / 2) });
  };
  const zoom = (by: number) => setRange(zoomed(range, by));
  const toNow = () =>
    setRange({
      from: Math.round(now - (range.to - range.from) * 0.9),
      to: Math.round(now + (range.to - range.from) * 0.1),
    });
  useKeys({
    "+": () => zoom(0.7),
    "=": () => zoom(0.7),
    "-": () => zoom(1 / 0.7),
    "0": () => setRange(undefined),
    ArrowLeft: () => setRange(moved(range, -0.15)),
    ArrowRight: () => setRange(moved(range, 0.15)),
    End: toNow,
    j: () => walk(1),
    k: () => walk(-1),
    Enter: () => (selected ? onOpen(selected) : false),
    x: () => selected && onMark(selected),
  });
  if (rows.length === 0) return empty;
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div className="flex flex-wrap items-center gap-2 border-b border-line px-4 pb-2 text-[13px]">
        <span className="text-muted tabular-nums">
          {rangeText(range)}
          {isFetchingNextPage && " · loading more"}
        </span>
        <span className="ml-auto flex items-center gap-1">
          <Button aria-label="Zoom out" title="−" onClick={() => zoom(1 / 0.7)}>
            −
          </Button>
          <Button aria-label="Zoom in" title="+" onClick={() => zoom(0.7)}>
            +
          </Button>
          <IconButton icon="back" label="Earlier" keys="←" onClick={() => setRange(moved(range, -0.3))} />
          <IconButton icon="forward" label="Later" keys="→" onClick={() => setRange(moved(range, 0.3))} />
          <Button onClick={() => setRange(undefined)} title="0">
            Fit
          </Button>
          <Button onClick={toNow} title="End">
            Now
          </Button>
        </span>
      </div>
      <Chart
        sessions={rows}
        range={range}
        now={now}
        selected={selected}
        marked={marked}
        onRange={setRange}
        onOpen={onOpen}
      />
    </div>
  );
}

function rangeText({ from, to }: Range): string {
  const say = (ms: number) =>
    new Date(ms).toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
  return `${say(from)} – ${say(to)}`;
}

/** The shown range. It is written to the URL once it has settled. */
function useRange(
  urlRange: Range | undefined,
  fit: Range,
  onRange: (r: Range | undefined) => void,
): [Range, (r: Range | undefined) => void] {
  const [range, set] = useState(urlRange);
  const inUrl = useRef(urlRange);
  const key = (r: Range | undefined) => r && `${r.from} ${r.to}`;
  if (key(urlRange) !== key(inUrl.current)) {
    inUrl.current = urlRange; // the browser's back button
    set(urlRange);
  }
  const settled = useSettled(range, 300);
  useEffect(() => {
    if (settled !== range || key(settled) === key(inUrl.current)) return;
    inUrl.current = settled;
    onRange(settled);
  });
  return [range ?? fit, set];
}
