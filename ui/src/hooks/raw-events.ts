import { useInfiniteQuery, useQueries } from "@tanstack/react-query";
import type { Envelope, EventsPage } from "@tapedeck/client";
import { useMemo, useRef } from "react";
import { useSource } from "./source";
import { useThrottled } from "./tick";

export interface RawFilter {
  channel?: string;
  type?: string;
  q?: string;
  /** Only matching events from this offset on. */
  from?: number;
}

/** Events are requested in pages that start at multiples of this. */
const pageSize = 200;

/**
 * The events of a session as a list. Without a filter, the index is the offset, and
 * only the visible pages are loaded.
 */
export function useRawEvents(id: string, head: number, filter: RawFilter, range: { first: number; last: number }) {
  const filtered = Boolean(filter.channel || filter.type || filter.q);
  const all = useByOffset(id, filtered ? 0 : head, range);
  const some = useFiltered(id, head, filter, filtered);
  return filtered ? some : all;
}

function useByOffset(id: string, head: number, range: { first: number; last: number }) {
  const source = useSource();
  const settled = useThrottled(head, 300);
  const first = Math.floor(Math.max(0, range.first) / pageSize);
  const last = Math.min(Math.floor(range.last / pageSize), Math.floor(Math.max(0, settled - 1) / pageSize));
  const pages = settled === 0 ? [] : Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i);
  const results = useQueries({
    queries: pages.map((page) => {
      const upTo = Math.min(settled, (page + 1) * pageSize);
      return {
        queryKey: ["events", id, page, upTo],
        queryFn: ({ signal }: { signal: AbortSignal }) =>
          source.events(id, { from: page * pageSize, limit: upTo - page * pageSize }, { signal }),
        staleTime: Number.POSITIVE_INFINITY,
        gcTime: 30_000,
        placeholderData: (old: EventsPage | undefined) => old,
      };
    }),
  });
  const known = useRef(new Map<number, Envelope>());
  const error = results.find((r) => r.isError)?.error ?? null;
  for (const r of results) for (const e of r.data?.events ?? []) known.current.set(e.offset, e);
  if (known.current.size > 20 * pageSize) {
    // Keep only the visible pages in memory.
    for (const offset of known.current.keys()) {
      if (Math.floor(offset / pageSize) < first || Math.floor(offset / pageSize) > last) known.current.delete(offset);
    }
  }
  const map = known.current;
  return {
    count: head,
    get: (i: number) => map.get(i),
    error,
    more: undefined,
    busy: results.some((r) => r.isFetching),
  };
}

function useFiltered(id: string, head: number, filter: RawFilter, wanted: boolean) {
  const source = useSource();
  const pages = useInfiniteQuery({
    queryKey: ["events-filtered", id, filter.channel, filter.type, filter.from],
    queryFn: ({ pageParam, signal }) =>
      source.events(id, { from: pageParam, limit: 500, channel: filter.channel, type: filter.type }, { signal }),
    initialPageParam: filter.from ?? 0,
    getNextPageParam: (p) => (p.next < p.head ? p.next : undefined),
    enabled: wanted,
  });
  const list = useMemo(() => {
    const all = pages.data?.pages.flatMap((p) => p.events) ?? [];
    return matching(all, { q: filter.q, channel: filter.channel });
  }, [pages.data, filter.q, filter.channel]);
  const behind = (pages.data?.pages.at(-1)?.next ?? 0) < head;
  const more = pages.hasNextPage
    ? () => void pages.fetchNextPage()
    : behind && !pages.isFetching
      ? () => void pages.refetch()
      : undefined;
  return { count: list.length, get: (i: number) => list[i], error: pages.error, more, busy: pages.isFetching };
}

/** The events that match. The server adds events of the channel session to every answer, so filter again. */
export function matching(events: Envelope[], { channel, q }: RawFilter): Envelope[] {
  const channels = channel?.split(",");
  const text = q?.toLowerCase();
  return events
    .filter((e) => !channels || channels.includes(e.channel))
    .filter((e) => !text || JSON.stringify(e).toLowerCase().includes(text));
}
