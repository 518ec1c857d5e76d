import { useQuery } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import type { Axis, Envelope as Event, Snapshot } from "@tapedeck/client";
import { useMemo, useRef, useState } from "react";
import { api } from "@/client";
import { useThrottled } from "@/hooks/tick";
import { Notice } from "../ui";
import type { ModelCall } from "./calls";
import { SentDialog } from "./sent-dialog";
import { SpanLine } from "./span-line";
import { type Span, type Turn, turnsOf } from "./spans";

interface Props {
  id: string;
  /** The conversation at the playhead, with all its threads. */
  view: Snapshot;
  head: number;
  axis: Axis | undefined;
  onSeek: (at: number) => void;
}

/** The height of a line: a finger needs a higher one. */
const lineHeight = matchMedia("(pointer: coarse)").matches ? 44 : 28;
const noReports: Event[] = [];
/** How many of the newest reports of usage are asked for. */
const maxReports = 1000;

/** A waterfall: the turns, the calls of models, the tools and the sub-agents, with how long each took. */
export default function Timing({ id, view, head, axis, onSeek }: Props) {
  const scroller = useRef<HTMLElement>(null);
  const [asked, ask] = useState<ModelCall>();
  const reports = useQuery({
    queryKey: ["usage-reports", id, useThrottled(head, 2000)],
    queryFn: ({ signal }) =>
      api.events(id, { type: "usage.reported", reverse: true, limit: maxReports }, { signal }).then((p) => p.events),
    placeholderData: (old) => old,
    retry: false,
  });
  const known = reports.data ?? noReports;
  const lines = useMemo(() => {
    const sorted = [...known].sort((a, b) => a.offset - b.offset);
    return turnsOf(view, sorted).flatMap((turn) => turn.spans.map((span): [Span, Turn] => [span, turn]));
  }, [view, known]);
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => lineHeight,
    getItemKey: (i) => lines[i]?.[0].key ?? i,
    overscan: 4,
    paddingStart: 8,
    paddingEnd: 16,
  });
  if (lines.length === 0)
    return (
      <div className="flex-1">
        <Notice title="No runs yet">When an agent runs, its calls of models and tools appear here.</Notice>
      </div>
    );
  return (
    <div className="flex min-w-0 flex-1 flex-col">
      {axis === "events" && (
        <p role="note" className="border-b border-line bg-warn-soft px-4 py-1.5 text-[13px] text-warn">
          The events of this session have no times of their own, so these bars are those of their recording.
        </p>
      )}
      <section
        ref={scroller}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard
        tabIndex={0}
        aria-label="Timing"
        className="min-h-0 flex-1 overflow-y-auto"
      >
        <ol className="relative" style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map((v) => {
            const line = lines[v.index];
            return (
              line && (
                <li
                  key={v.key}
                  aria-setsize={lines.length}
                  aria-posinset={v.index + 1}
                  className="absolute inset-x-0 px-4 max-sm:px-2"
                  style={{ transform: `translateY(${v.start}px)` }}
                >
                  <SpanLine span={line[0]} turn={line[1]} onSeek={onSeek} onAsk={ask} />
                </li>
              )
            );
          })}
        </ol>
      </section>
      {asked && <SentDialog id={id} call={asked} onSeek={onSeek} onClose={() => ask(undefined)} />}
    </div>
  );
}
