import { useQuery } from "@tanstack/react-query";
import { memo, useState } from "react";
import type { EventsQuery } from "@/data/api";
import type { Event } from "@/fold/types";
import { useSource } from "@/hooks/source";
import { clock } from "../format";
import { Plain, pretty } from "../json";
import { Button } from "../ui";

interface Props {
  id: string;
  event: Event;
  epoch: number;
  /** It is the last one that was played. */
  current: boolean;
  /** It is still to come. */
  ahead: boolean;
  /** It was taken back. */
  struck: boolean;
  open: boolean;
  onToggle: (offset: number) => void;
  onSeek: (at: number) => void;
}

export const EventRow = memo(function EventRow({
  id,
  event: e,
  epoch,
  current,
  ahead,
  struck,
  open,
  onToggle,
  onSeek,
}: Props) {
  return (
    <div
      aria-current={current || undefined}
      className={`border-l-2 ${current ? "border-accent bg-accent-soft" : "border-transparent"} ${ahead ? "text-muted" : ""}`}
    >
      <button
        type="button"
        aria-expanded={open}
        onClick={() => onToggle(e.offset)}
        className="grid h-7 w-full grid-cols-[4.5rem_5.5rem_6rem_14rem_1fr] items-center gap-2 px-3 text-left font-mono text-xs hover:bg-raised"
      >
        <span className="text-right tabular-nums">{e.offset}</span>
        <span className="text-right text-muted tabular-nums">{clock(Date.parse(e.timestamp) - epoch, true)}</span>
        <span className="truncate text-muted">{e.channel}</span>
        <span
          className={`truncate font-medium ${/ERROR|failed/.test(e.type) ? "text-bad" : ""} ${struck ? "line-through" : ""}`}
        >
          {e.type}
          {struck && <span className="sr-only"> (taken back)</span>}
        </span>
        <span className="truncate text-muted">{preview(e)}</span>
      </button>
      {open && <Details id={id} event={e} onSeek={onSeek} />}
    </div>
  );
});

function preview(e: Event): string {
  const text = JSON.stringify(e.data ?? {});
  return text.length > 300 ? text.slice(0, 300) : text;
}

/** The event as it is stored, and as the SSE task protocol has it. */
function Details({ id, event, onSeek }: { id: string; event: Event; onSeek: (at: number) => void }) {
  const [form, setForm] = useState<"native" | "task">("native");
  const { recording } = useSource();
  return (
    <div className="flex flex-col gap-2 px-4 py-2">
      <div className="flex items-center gap-2">
        {!recording && (
          <>
            <Button
              aria-pressed={form === "native"}
              look={form === "native" ? "plain" : "ghost"}
              onClick={() => setForm("native")}
            >
              As stored
            </Button>
            <Button
              aria-pressed={form === "task"}
              look={form === "task" ? "plain" : "ghost"}
              onClick={() => setForm("task")}
            >
              As a task event
            </Button>
          </>
        )}
        <Button look="ghost" icon="play" onClick={() => onSeek(event.offset + 1)}>
          Set the playhead here
        </Button>
      </div>
      {form === "native" ? (
        <Plain text={pretty(event)} label={`event ${event.offset}`} />
      ) : (
        <TaskForm id={id} offset={event.offset} />
      )}
    </div>
  );
}

function TaskForm({ id, offset }: { id: string; offset: number }) {
  const source = useSource();
  const found = useQuery({
    queryKey: ["event-task", id, offset],
    queryFn: async ({ signal }) => {
      const page = await source.events(id, { from: offset, limit: 8, format: "task" } as EventsQuery, { signal });
      return (page.events as unknown as { sequence: number }[]).filter((e) => e.sequence === offset);
    },
  });
  if (found.isPending) return <p className="text-xs text-muted">Loading…</p>;
  if (found.isError) return <p className="text-xs text-bad">{found.error.message}</p>;
  if (found.data.length === 0)
    return <p className="text-xs text-muted">The SSE task protocol has nothing for this event.</p>;
  return <Plain text={found.data.map(pretty).join("\n")} label={`event ${offset} as a task event`} />;
}
