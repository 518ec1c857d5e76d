import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { useKeys } from "@/hooks/keys";
import { useMedia } from "@/hooks/media";
import { asRows, type InOrder, type Listed, useHits, type useSessions } from "@/hooks/sessions";
import { day } from "./format";
import type { MenuItem } from "./menu";
import { SessionColumns } from "./session-columns";
import { HitRow, hitsHeight, SessionRow } from "./session-row";
import { cell, group, row, table } from "./table-roles";
import { ErrorBox, Loading } from "./ui";

const headingHeight = 38;
const columnsHeight = 36;

interface Props {
  list: ReturnType<typeof useSessions>;
  order: InOrder;
  onOrder: (o: InOrder) => void;
  q?: string;
  marked: string[];
  onMark: (id: string) => void;
  onOpen: (id: string) => void;
  empty: ReactNode;
  itemsOf: (s: Listed) => MenuItem[];
}

/** The list: a table whose rows are drawn only where they are seen. */
export function SessionList({ list, order, onOrder, q, marked, onMark, onOpen, empty, itemsOf }: Props) {
  const hits = useHits(q);
  const { sort, order: direction } = order;
  const rows = useMemo(
    () => asRows(list.rows, { sort, order: direction }, hits.by, day),
    [list.rows, sort, direction, hits.by],
  );
  const narrow = useMedia("(max-width: 639px)");
  const rowHeight = narrow ? 108 : 56;
  const [selected, select] = useState(-1);
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: (i) =>
      rowHeight + (rows[i]?.heading ? headingHeight : 0) + hitsHeight(rows[i]?.hits?.length ?? 0, narrow),
    getItemKey: (i) => rows[i]?.session.id ?? i,
    overscan: 6,
    scrollPaddingStart: columnsHeight, // they cover the beginning
    scrollPaddingEnd: columnsHeight,
  });
  const items = virtual.getVirtualItems();
  const lastShown = items.at(-1)?.index ?? 0;
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = list;
  // biome-ignore lint/correctness/useExhaustiveDependencies: heights follow from the rows
  useEffect(() => virtual.measure(), [rows, narrow]);
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage && lastShown > rows.length - 20) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage, lastShown, rows.length]);

  const move = (by: number) => {
    const to = Math.max(0, Math.min(rows.length - 1, selected + by));
    select(to);
    virtual.scrollToIndex(to);
  };
  // Of all rows only one is in the order of Tab. From there arrow keys go to the others,
  // and along the controls of a row.
  const inOrder = selected >= 0 && selected < rows.length ? selected : (items[0]?.index ?? 0);
  const controls = (index: number) => [
    ...(scroller.current?.querySelectorAll<HTMLElement>(`[data-row="${index}"] :is(input, a, button)`) ?? []),
  ];
  const [goal, setGoal] = useState<{ row: number; control: number }>();
  useEffect(() => {
    if (!goal) return;
    controls(goal.row)[goal.control]?.focus();
    setGoal(undefined);
  });
  const focused = () => {
    const row = document.activeElement?.closest<HTMLElement>("[data-row]");
    if (!row || !scroller.current?.contains(row)) return undefined;
    const n = Number(row.dataset.row);
    return { row: n, control: controls(n).indexOf(document.activeElement as HTMLElement) };
  };
  const arrow = (by: number) => {
    const from = focused();
    if (!from) return false; // the browser scrolls
    const row = Math.max(0, Math.min(rows.length - 1, from.row + by));
    select(row);
    virtual.scrollToIndex(row);
    setGoal({ row, control: from.control });
  };
  const along = (by: number) => {
    const from = focused();
    if (!from) return false;
    controls(from.row)[from.control + by]?.focus();
  };
  const at = rows[selected]?.session.id;
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => arrow(1),
    ArrowUp: () => arrow(-1),
    ArrowRight: () => along(1),
    ArrowLeft: () => along(-1),
    Enter: () => at !== undefined && onOpen(at),
    x: () => at !== undefined && onMark(at),
  });
  return (
    <section
      ref={scroller}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard
      tabIndex={0}
      aria-label="List of sessions"
      className="min-h-0 flex-1 overflow-y-auto [overflow-anchor:none]"
    >
      {hits.error && (
        <div className="p-4">
          <ErrorBox error={hits.error} />
        </div>
      )}
      {rows.length === 0 ? (
        empty
      ) : (
        <div {...table("Sessions", list.hasNextPage ? -1 : rows.length)}>
          <SessionColumns {...order} onSort={(sort, order) => onOrder({ sort, order })} />
          <div {...group} className="relative" style={{ height: virtual.getTotalSize() }}>
            {items.map((v) => {
              const listed = rows[v.index];
              if (!listed) return null;
              const place = { height: v.size, transform: `translateY(${v.start}px)` };
              const inTabOrder = v.index === inOrder;
              return (
                <div key={v.key} data-row={v.index} className="absolute inset-x-0 sm:px-4" style={place}>
                  {listed.heading && <Heading>{listed.heading}</Heading>}
                  <SessionRow
                    row={listed}
                    selected={v.index === selected}
                    marked={marked.includes(listed.session.id)}
                    onMark={() => onMark(listed.session.id)}
                    items={itemsOf(listed.session)}
                    inTabOrder={inTabOrder}
                  />
                  {listed.hits && <HitRow hits={listed.hits} inTabOrder={inTabOrder} />}
                </div>
              );
            })}
          </div>
        </div>
      )}
      {isFetchingNextPage && <Loading what="more" />}
    </section>
  );
}

function Heading({ children }: { children: string }) {
  return (
    <div {...row} className="flex h-[38px] items-end px-4 pb-1.5 sm:px-0">
      <span {...cell}>
        <h2 className="text-xs font-semibold text-muted">{children}</h2>
      </span>
    </div>
  );
}
