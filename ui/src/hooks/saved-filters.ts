import { useState } from "react";
import { type ListSearch, listSearch } from "@/router/search";
import { remembered } from "./remembered";

/** Filters of the list with a name. */
export interface SavedFilter {
  name: string;
  search: ListSearch;
}

const key = "tapedeck.filters";
const most = 30;

/** The members of a filter that are set, in one order. */
function plain(search: ListSearch): ListSearch {
  const { view: _view, t0: _t0, t1: _t1, sort: _sort, order: _order, ...filter } = listSearch({ ...search });
  return Object.fromEntries(Object.entries(filter).filter(([, v]) => v !== undefined));
}

export function sameFilter(a: ListSearch, b: ListSearch): boolean {
  return JSON.stringify(plain(a)) === JSON.stringify(plain(b));
}

/** Reads what a browser has stored; what is not a saved filter is left out. */
export function readSaved(text: string | null): SavedFilter[] {
  try {
    const all: unknown = JSON.parse(text ?? "[]");
    if (!Array.isArray(all)) return [];
    return all
      .filter((f) => typeof f?.name === "string" && f.name !== "" && typeof f.search === "object" && f.search)
      .map((f) => ({ name: f.name.slice(0, 60), search: plain(f.search) }))
      .slice(0, most);
  } catch {
    return [];
  }
}

/** The saved filters of this browser, and how to replace them. */
export function useSavedFilters(): [SavedFilter[], (next: SavedFilter[]) => void] {
  const [saved, set] = useState(() => readSaved(remembered.get(key)));
  const save = (next: SavedFilter[]) => {
    const kept = next.map((f) => ({ ...f, search: plain(f.search) })).slice(-most);
    set(kept);
    remembered.set(key, JSON.stringify(kept));
  };
  return [saved, save];
}
