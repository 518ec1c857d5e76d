import { useNavigate } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import type { Branch, ReplayIndex } from "@tapedeck/client";
import { type KeyboardEvent, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useMedia } from "@/hooks/media";
import { ForkDialog } from "../session/fork-dialog";
import { Chosen } from "./chosen";
import { Lines, middleOf, SpotView } from "./drawing";
import { BranchLabel } from "./label";
import { type Area, type BranchLane, branchLanes, draw, leavesAt, type Spot } from "./layout";
import { branchName } from "./tree";

/** Widths of the column of names. A narrow page leaves more space for the graph. */
const labelWidths = { wide: 440, middle: 340, narrow: 180 };

export interface GraphProps {
  id: string;
  branches: Branch[];
  index?: ReplayIndex;
  /** The playhead; absent for live. */
  at?: number;
  onSeek: (at: number) => void;
  /** Opens the conversation at an offset. */
  onOpen: (at: number) => void;
  onUndo: (marker: string) => void;
  busy: boolean;
}

/** Draws the tree: a lane for each branch, a node for each invocation. */
export function Graph({ id, branches, index, at, onSeek, onOpen, onUndo, busy }: GraphProps) {
  const navigate = useNavigate();
  const lanes = useMemo(() => branchLanes(branches, index), [branches, index]);
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const [selected, select] = useState<string>();
  const [fork, setFork] = useState<{ id: string; title?: string; at: number }>();
  const scroller = useRef<HTMLElement>(null);
  const labelWidth = useLabelWidth();
  const { width, height } = useArea(scroller);
  const drawing = useMemo(
    () => draw(lanes, opened, at, { width: width - labelWidth, height: height - 24 }),
    [lanes, opened, at, width, height, labelWidth],
  );
  const { rowHeight } = drawing;
  const rows = useVirtualizer({
    count: lanes.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 2,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: with another height of the rows
  useLayoutEffect(() => rows.measure(), [rows, rowHeight]);
  const shown = rows.getVirtualItems();
  const span = useSpan(scroller);

  const place = find(drawing.spots, selected);
  const lane = lanes[place?.row ?? -1];
  const spot = place && drawing.spots[place.row]?.[place.n];
  const momentOf = (s: Spot | undefined) => (s?.kind === "turn" ? s.turn.first + 1 : undefined);

  const go = (row: number, n: number) => {
    const s = drawing.spots[row]?.[n];
    if (!s) return;
    select(s.key);
    rows.scrollToIndex(row);
    reveal(scroller.current, s, labelWidth);
  };
  const walk = (right: number, down: number) => {
    if (!place) {
      const row = Math.max(
        0,
        lanes.findIndex((l) => l.branch.current),
      );
      go(row, (drawing.spots[row]?.length ?? 1) - 1);
    } else if (right) go(place.row, place.n + right);
    else {
      const row = place.row + down;
      const x = drawing.spots[place.row]?.[place.n]?.x ?? 0;
      go(row, nearest(drawing.spots[row] ?? [], x));
    }
  };
  const pick = (l: BranchLane, s: Spot) => {
    const opens = s.kind === "folded" && s.from >= 0;
    select(opens ? s.opens : s.key);
    if (opens) setOpened((o) => new Set([...o, s.from]));
    if (s.kind === "turn" && l.branch.session === id) onSeek(s.turn.first + 1);
  };
  const open = () => {
    if (!lane || !spot) return;
    if (spot.kind === "folded") return pick(lane, spot);
    const moment = momentOf(spot);
    if (lane.branch.session === id && moment !== undefined) onOpen(moment);
    else void navigate({ to: "/s/$id", params: { id: lane.branch.session }, search: { at: moment } });
  };
  const forkHere = () => {
    if (!lane || !spot || spot.kind === "folded") return;
    const { session, title, to } = lane.branch;
    setFork({
      id: session,
      title: title ?? titleOf(branches, session),
      at: spot.kind === "turn" ? spot.turn.last + 1 : to,
    });
  };
  const compare = () => {
    if (lane && spot) void navigate({ to: "/compare", search: comparedWith(id, lane, spot) });
  };
  const onKeyDown = (e: KeyboardEvent) => {
    const act = {
      ArrowRight: () => walk(1, 0),
      ArrowLeft: () => walk(-1, 0),
      ArrowDown: () => walk(0, 1),
      ArrowUp: () => walk(0, -1),
      Enter: open,
      b: forkHere,
      c: compare,
    }[e.altKey || e.ctrlKey || e.metaKey ? "" : e.key];
    if (!act) return;
    e.preventDefault(); // the page has other shortcuts on these keys
    act();
  };

  return (
    <div className="flex h-full flex-col">
      <section
        ref={scroller}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard
        tabIndex={0}
        aria-label="Branches graph"
        className="relative min-h-0 flex-1 overflow-auto"
      >
        <div className="relative" style={{ height: rows.getTotalSize() + 24, width: labelWidth + drawing.width }}>
          <div
            role="tree"
            tabIndex={0}
            aria-label="Branches: arrow keys move, Enter opens, b forks, c compares"
            aria-activedescendant={place ? domId(place.row, place.n) : undefined}
            onKeyDown={onKeyDown}
            onFocus={() => !place && walk(0, 0)}
            className="absolute inset-y-0 outline-none"
            style={{ left: labelWidth, width: drawing.width }}
          >
            <svg
              role="presentation"
              width={drawing.width}
              height={rows.getTotalSize() + 24}
              className="absolute inset-0"
            >
              <Lines drawing={drawing} rows={shown.map((v) => v.index)} />
              {shown.map((v) =>
                (drawing.spots[v.index] ?? []).map((s, n) =>
                  s.key === selected || inSpan(s, span) ? (
                    <SpotView
                      key={s.key}
                      id={domId(v.index, n)}
                      spot={s}
                      lane={lanes[v.index] as BranchLane}
                      y={middleOf(v.index, rowHeight)}
                      width={drawing.columnWidth}
                      at={at}
                      last={n === (drawing.spots[v.index]?.length ?? 0) - 1}
                      selected={s.key === selected}
                      onPick={() => pick(lanes[v.index] as BranchLane, s)}
                      onOpen={open}
                    />
                  ) : null,
                ),
              )}
            </svg>
          </div>
          <ol className="sticky left-0 z-10 h-0" style={{ width: labelWidth }} aria-label="Branches">
            {shown.map((v) => (
              <li
                key={v.key}
                className="absolute border-r border-line bg-bg"
                style={{ top: v.index * rowHeight, height: rowHeight, width: labelWidth }}
              >
                <BranchLabel
                  lane={lanes[v.index] as BranchLane}
                  leaves={leavesAt(lanes[v.index] as BranchLane, lanes)}
                  parentName={parentName(lanes, v.index)}
                  currentId={id}
                  onUndo={onUndo}
                  busy={busy}
                />
              </li>
            ))}
          </ol>
        </div>
      </section>
      {lane && spot && (
        <Chosen
          lane={lane}
          spot={spot}
          name={lane.branch.kind === "rewound" ? branchName(lane.branch) : lane.branch.title || lane.branch.id}
          onOpen={open}
          onFork={forkHere}
          onCompare={compare}
        />
      )}
      {fork && (
        <ForkDialog
          {...fork}
          onClose={() => setFork(undefined)}
          onDone={(made) => void navigate({ to: "/s/$id", params: { id: made.id }, search: {} })}
        />
      )}
    </div>
  );
}

function useLabelWidth(): number {
  const wide = useMedia("(min-width: 64rem)");
  const middle = useMedia("(min-width: 40rem)");
  return wide ? labelWidths.wide : middle ? labelWidths.middle : labelWidths.narrow;
}

const domId = (row: number, n: number) => `branch-${row}-${n}`;

const titleOf = (branches: Branch[], session: string) => branches.find((b) => b.id === session)?.title;

function find(spots: Spot[][], key: string | undefined): { row: number; n: number } | undefined {
  if (key === undefined) return undefined;
  for (let row = 0; row < spots.length; row++) {
    const n = (spots[row] as Spot[]).findIndex((s) => s.key === key);
    if (n >= 0) return { row, n };
  }
  return undefined;
}

function nearest(spots: Spot[], x: number): number {
  let best = 0;
  for (let n = 1; n < spots.length; n++)
    if (Math.abs((spots[n] as Spot).x - x) < Math.abs((spots[best] as Spot).x - x)) best = n;
  return best;
}

function parentName(lanes: BranchLane[], row: number): string {
  const parent = lanes[lanes[row]?.parent ?? -1];
  return parent ? branchName(parent.branch) : "";
}

/** The search parameters that compare this session with the selected spot. */
export function comparedWith(id: string, { branch: b }: BranchLane, spot: Spot) {
  const moment = spot.kind === "turn" ? spot.turn.last + 1 : b.to;
  if (b.kind === "rewound") return { a: b.session, at_a: b.to, b: id };
  return { a: id, b: b.session, at_b: moment < b.to ? moment : undefined };
}

/** The size of the area in which the graph is. */
function useArea(scroller: React.RefObject<HTMLElement | null>): Area {
  const [area, setArea] = useState<Area>({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const el = scroller.current;
    if (!el) return;
    const look = () =>
      setArea((r) =>
        r.width === el.clientWidth && r.height === el.clientHeight
          ? r
          : { width: el.clientWidth, height: el.clientHeight },
      );
    look();
    const watch = new ResizeObserver(look);
    watch.observe(el);
    return () => watch.disconnect();
  }, [scroller]);
  return area;
}

/** The visible part of the width. */
function useSpan(scroller: React.RefObject<HTMLElement | null>): [number, number] {
  const [span, set] = useState<[number, number]>([0, 1600]);
  useEffect(() => {
    const el = scroller.current;
    if (!el) return;
    const look = () => {
      const step = 200; // so that not every pixel renders again
      const from = Math.floor(el.scrollLeft / step) * step;
      set((s) => (s[0] === from && s[1] === from + el.clientWidth + step ? s : [from, from + el.clientWidth + step]));
    };
    look();
    el.addEventListener("scroll", look, { passive: true });
    const watch = new ResizeObserver(look);
    watch.observe(el);
    return () => {
      el.removeEventListener("scroll", look);
      watch.disconnect();
    };
  }, [scroller]);
  return span;
}

function inSpan(s: Spot, [from, to]: [number, number]): boolean {
  return s.x + (s.kind === "folded" ? s.width : 0) > from - 40 && s.x < to;
}

function reveal(el: HTMLElement | null, s: Spot, labelWidth: number): void {
  if (!el) return;
  const sight = el.clientWidth - labelWidth;
  if (s.x < el.scrollLeft + 40) el.scrollLeft = Math.max(0, s.x - sight / 2);
  else if (s.x > el.scrollLeft + sight - 60) el.scrollLeft = s.x - sight / 2;
}
