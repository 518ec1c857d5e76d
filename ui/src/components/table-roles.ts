/**
 * The roles of a table whose rows are placed by their offset, and whose cells are in a grid.
 * A table element can have neither.
 */
export const group = { role: "rowgroup" } as const;
export const row = { role: "row" } as const;
export const cell = { role: "cell" } as const;

/** The table; rows is -1 if it is not known how many there are. */
export const table = (label: string, rows: number) =>
  ({ role: "table", "aria-label": label, "aria-rowcount": rows }) as const;

/** The head of a column, and whether the table is sorted by it; undefined if it cannot be. */
export const head = (sort?: "ascending" | "descending" | "none") =>
  ({ role: "columnheader", "aria-sort": sort }) as const;
