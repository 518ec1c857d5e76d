import type { SessionSort } from "@tapedeck/client";
import { group, head, row } from "./table-roles";

export type Order = "asc" | "desc";

/** The orders of the list, with what a person calls them. The first one is the default. */
export const sorts: { sort: SessionSort; label: string }[] = [
  { sort: "activity", label: "Newest activity" },
  { sort: "created", label: "Newest" },
  { sort: "title", label: "Title" },
  { sort: "duration", label: "Length" },
  { sort: "tokens", label: "Tokens" },
  { sort: "cost", label: "Cost" },
  { sort: "failures", label: "Failed tools" },
];

/** The order in which a sort begins: the highest first, but titles from A. */
export const usual = (sort: SessionSort): Order => (sort === "title" ? "asc" : "desc");

/** The columns of a row from 640 and from 1,024 pixels on; a narrower page has cards. */
export const columns =
  "sm:grid-cols-[2rem_8.5rem_minmax(0,1fr)_6.5rem_4.5rem_2.5rem] lg:grid-cols-[2rem_8.5rem_minmax(0,1fr)_8.5rem_6.5rem_4.5rem_4rem_4rem_4.5rem_2.5rem]";

const heads: { label: string; sort?: SessionSort; className?: string }[] = [
  { label: "Status" },
  { label: "Session", sort: "title" },
  { label: "Agent, model", className: "hidden lg:block" },
  { label: "Activity", sort: "activity", className: "text-right" },
  { label: "Length", sort: "duration", className: "text-right" },
  { label: "Tokens", sort: "tokens", className: "hidden text-right lg:block" },
  { label: "Cost", sort: "cost", className: "hidden text-right lg:block" },
  { label: "Failed", sort: "failures", className: "hidden text-right lg:block" },
];

interface Props {
  sort: SessionSort;
  order: Order;
  onSort: (sort: SessionSort, order: Order) => void;
}

/**
 * The heads of the columns. They are not in the order of Tab, so that one Tab reaches the
 * rows; the field "Sort" does the same.
 */
export function SessionColumns({ sort, order, onSort }: Props) {
  return (
    <div {...group} className="sticky top-0 z-10 hidden border-b border-line bg-bg px-4 sm:block">
      <div
        {...row}
        className={`grid h-8 items-center gap-3 border-l-2 border-transparent pr-3 pl-2 text-xs ${columns}`}
      >
        <span {...head()}>
          <span className="sr-only">Mark</span>
        </span>
        {heads.map((h) => {
          const on = h.sort === sort;
          const next: Order = on ? (order === "asc" ? "desc" : "asc") : usual(h.sort ?? "created");
          return (
            <span
              key={h.label}
              {...head(h.sort && (on ? (order === "asc" ? "ascending" : "descending") : "none"))}
              className={`font-medium whitespace-nowrap text-muted ${h.className ?? ""}`}
            >
              {h.sort ? (
                <button
                  type="button"
                  tabIndex={-1}
                  onClick={() => h.sort && onSort(h.sort, next)}
                  className={`hover:text-text ${on ? "text-text" : ""}`}
                >
                  {h.label}
                  {on && <span aria-hidden="true">{order === "asc" ? " ↑" : " ↓"}</span>}
                </button>
              ) : (
                h.label
              )}
            </span>
          );
        })}
        <span {...head()}>
          <span className="sr-only">More</span>
        </span>
      </div>
    </div>
  );
}
