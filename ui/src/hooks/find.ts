import { useQuery } from "@tanstack/react-query";
import type { SearchHit } from "@tapedeck/client";
import { completeAt, find, lineage } from "@tapedeck/client/player";
import { useCallback, useEffect, useRef, useState } from "react";
import type { Row } from "@/components/conversation/rows";
import { useKeys } from "./keys";
import { type Source, useSource } from "./source";
import { useSettled } from "./tick";

export interface Find {
  open: boolean;
  /** Opens the search, or selects its text; false if its field already has the focus. */
  start: () => boolean;
  stop: () => void;
  q: string;
  setQ: (q: string) => void;
  hits: SearchHit[];
  more: boolean;
  busy: boolean;
  error: unknown;
  /** The index of the current hit; -1 for none. */
  at: number;
  go: (by: 1 | -1) => void;
}

interface Options {
  id: string;
  head: number;
  thread?: string | undefined;
  rows: Row[];
  /** The events at the playhead are being loaded. */
  seeking: boolean;
  onSeek: (at: number) => void;
  onRow: (row: Row) => void;
}

export const findField = "find";

/**
 * Find in a session. If the row of a hit is loaded, it is shown. Otherwise the
 * playhead moves to the hit.
 */
export function useFind({ id, head, thread, rows, seeking, onSeek, onRow }: Options): Find {
  const source = useSource();
  const [open, setOpen] = useState(false);
  const [q, setQ] = useState("");
  const [here, setHere] = useState<number>(); // the offset of the current hit
  const settledQuery = useSettled(q.trim(), 200);
  const upTo = useSettled(head, 1000);
  const wanted = open && /[\p{L}\p{N}]/u.test(settledQuery);
  const from = useQuery({ queryKey: ["lineage", id], queryFn: () => lineage(source, id), enabled: open, retry: 1 });
  const found = useQuery({
    queryKey: ["find", id, thread, settledQuery, upTo],
    queryFn: ({ signal }) => find(source, from.data ?? [], settledQuery, thread, signal),
    enabled: wanted && from.isSuccess,
    placeholderData: (old, query) => (query?.queryKey[3] === settledQuery ? old : undefined),
    refetchInterval: (query) => (query.state.data?.behind ? 500 : false),
    retry: false,
  });
  const hits = (wanted && found.data?.hits) || none;
  const at = hits.findIndex((h) => h.offset === here);

  const show = useShow(source, id, rows, seeking, onSeek, onRow);
  const to = useCallback(
    (hit: SearchHit | undefined) => {
      setHere(hit?.offset);
      if (hit) show(hit.offset);
    },
    [show],
  );
  // Start with the newest hit: a conversation is open at its end.
  const last = hits.at(-1);
  const fresh = `${settledQuery}\n${hits.length > 0}`;
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each search
  useEffect(() => {
    if (open && last) to(last);
  }, [open, fresh]);

  return {
    open,
    start: () => {
      const input = document.getElementById(findField) as HTMLInputElement | null;
      if (input && input === document.activeElement) return false; // the second press opens the browser's search
      setOpen(true);
      input?.select();
      return true;
    },
    stop: () => {
      setOpen(false);
      setHere(undefined);
    },
    q,
    setQ,
    hits,
    more: found.data?.more === true,
    busy: q.trim() !== settledQuery || (wanted && (found.isPending || found.data?.behind === true)),
    error: wanted ? (found.error ?? from.error) : undefined,
    at,
    go: (by) => to(hits[(at < 0 ? (by > 0 ? 0 : -1) : at + by + hits.length) % hits.length] ?? last),
  };
}

/** The shortcuts for find: the search bar in the conversation, the search field in other views. */
export function useFindKeys(find: Find, view: string): void {
  const start = () => {
    if (view === "branches") return false;
    if (view === "conversation") return find.start();
    document.getElementById("event-search")?.focus();
  };
  useKeys({
    "/": start,
    "Ctrl+f": start,
    F3: () => (find.open ? find.go(1) : start()),
    "Shift+F3": () => find.open && find.go(-1),
  });
}

const none: SearchHit[] = [];

/** Scrolls to the row of a hit, and moves the playhead first if needed. */
function useShow(
  source: Source,
  id: string,
  rows: Row[],
  seeking: boolean,
  onSeek: (at: number) => void,
  onRow: (row: Row) => void,
) {
  const wanted = useRef<{ offset: number; sought: boolean }>(undefined);
  const look = useCallback(async () => {
    const want = wanted.current;
    if (!want || seeking) return;
    const row = rows.find((r) => isOf(r, want.offset));
    if (row) {
      wanted.current = undefined;
      onRow(row);
    } else if (!want.sought) {
      want.sought = true;
      const at = await completeAt(source, id, want.offset).catch(() => want.offset + 1);
      if (wanted.current === want) onSeek(at);
    }
  }, [source, id, rows, seeking, onSeek, onRow]);
  const latest = useRef(look);
  useEffect(() => {
    latest.current = look;
    void look();
  }, [look]);
  return useCallback((offset: number) => {
    wanted.current = { offset, sought: false };
    void latest.current();
  }, []);
}

function isOf(r: Row, offset: number): boolean {
  if (r.kind === "tool") return r.call.offset === offset || r.call.result?.offset === offset;
  return r.kind === "message" && r.message.offset === offset;
}
