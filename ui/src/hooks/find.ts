import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";
import type { Row } from "@/components/conversation/rows";
import { completeAt, find, lineage } from "@/data/find";
import type { SearchHit } from "@/fold/types";
import { useKeys } from "./keys";
import { type Source, useSource } from "./source";
import { useSettled } from "./tick";

export interface Find {
  open: boolean;
  /** Opens it, or puts the words under the cursor again; false if they are there already. */
  start: () => boolean;
  stop: () => void;
  q: string;
  setQ: (q: string) => void;
  hits: SearchHit[];
  more: boolean;
  busy: boolean;
  error: unknown;
  /** Which of the hits; -1 before the first. */
  at: number;
  go: (by: 1 | -1) => void;
}

interface Options {
  id: string;
  head: number;
  thread?: string | undefined;
  rows: Row[];
  /** What is at the playhead is on its way. */
  seeking: boolean;
  onSeek: (at: number) => void;
  onRow: (row: Row) => void;
}

export const findField = "find";

/**
 * Finding in a session. A hit whose row is here is shown there; for any other
 * one the playhead goes to where it was said.
 */
export function useFind({ id, head, thread, rows, seeking, onSeek, onRow }: Options): Find {
  const source = useSource();
  const [open, setOpen] = useState(false);
  const [q, setQ] = useState("");
  const [here, setHere] = useState<number>(); // the offset of the hit that is shown
  const asked = useSettled(q.trim(), 200);
  const upTo = useSettled(head, 1000);
  const wanted = open && /[\p{L}\p{N}]/u.test(asked);
  const from = useQuery({ queryKey: ["lineage", id], queryFn: () => lineage(source, id), enabled: open, retry: 1 });
  const found = useQuery({
    queryKey: ["find", id, thread, asked, upTo],
    queryFn: ({ signal }) => find(source, from.data ?? [], asked, thread, signal),
    enabled: wanted && from.isSuccess,
    placeholderData: (old, query) => (query?.queryKey[3] === asked ? old : undefined),
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
  // The newest comes first: that is where people are who look at a conversation.
  const last = hits.at(-1);
  const fresh = `${asked}\n${hits.length > 0}`;
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each search
  useEffect(() => {
    if (open && last) to(last);
  }, [open, fresh]);

  return {
    open,
    start: () => {
      const input = document.getElementById(findField) as HTMLInputElement | null;
      if (input && input === document.activeElement) return false; // twice is the browser's own
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
    busy: q.trim() !== asked || (wanted && (found.isPending || found.data?.behind === true)),
    error: wanted ? (found.error ?? from.error) : undefined,
    at,
    go: (by) => to(hits[(at < 0 ? (by > 0 ? 0 : -1) : at + by + hits.length) % hits.length] ?? last),
  };
}

/** The keys that find: in the conversation by its bar, in other views by what they have. */
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

/** Brings a row into sight, after the playhead has gone to it if it must. */
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
