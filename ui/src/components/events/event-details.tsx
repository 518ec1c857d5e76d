import { useQuery } from "@tanstack/react-query";
import type { Envelope, EventsQuery } from "@tapedeck/client";
import { useState } from "react";
import { useSource } from "@/hooks/source";
import { client } from "@/live";
import { Plain, pretty } from "../json";
import { Button } from "../ui";
import { CopyButton } from "./copy";

const forms = { native: "As stored", durable: "As a Durable Stream", task: "As a task event" } as const;
type Form = keyof typeof forms;

interface Props {
  id: string;
  event: Envelope;
  onSeek: (at: number) => void;
}

/** One event as stored, and as each protocol sends it. */
export function EventDetails({ id, event, onSeek }: Props) {
  const [form, setForm] = useState<Form>("native");
  const { recording } = useSource();
  const url = client.eventsUrl(id, { from: event.offset, limit: 1 });
  return (
    <div className="flex flex-col gap-2 px-4 py-2">
      <div className="flex flex-wrap items-center gap-2">
        {!recording &&
          (Object.keys(forms) as Form[]).map((f) => (
            <Button key={f} aria-pressed={form === f} look={form === f ? "plain" : "ghost"} onClick={() => setForm(f)}>
              {forms[f]}
            </Button>
          ))}
        <span className="flex-1" />
        <CopyButton text={() => JSON.stringify(event)}>Copy as NDJSON</CopyButton>
        {!recording && <CopyButton text={() => `curl '${url}'`}>Copy curl</CopyButton>}
        <Button look="ghost" icon="play" onClick={() => onSeek(event.offset + 1)}>
          Set the playhead here
        </Button>
      </div>
      {form === "native" && <Plain text={pretty(event)} label={`event ${event.offset}`} />}
      {form === "durable" && <DurableForm id={id} offset={event.offset} />}
      {form === "task" && <TaskForm id={id} offset={event.offset} />}
    </div>
  );
}

/** An offset in the form of Durable Streams: the record number, and a byte position of 0. */
const durableOffset = (n: number) => `${String(n).padStart(16, "0")}_${"0".repeat(16)}`;

function DurableForm({ id, offset }: { id: string; offset: number }) {
  const path = `/v1/stream/sessions/${encodeURIComponent(id)}?offset=${durableOffset(offset)}`;
  const found = useQuery({
    queryKey: ["event-durable", id, offset],
    queryFn: async ({ signal }) => {
      const response = await client.request(path, { signal });
      return ((await response.json()) as unknown[])[0];
    },
  });
  if (!found.isSuccess) return <Waiting error={found.error} />;
  const lines = [
    `GET ${path}`,
    "",
    `Stream-Next-Offset: ${durableOffset(offset + 1)}`,
    "",
    `[${JSON.stringify(found.data)}]`,
  ];
  return <Plain text={lines.join("\n")} label={`event ${offset} as a Durable Stream`} />;
}

function TaskForm({ id, offset }: { id: string; offset: number }) {
  const source = useSource();
  const found = useQuery({
    queryKey: ["event-task", id, offset],
    queryFn: async ({ signal }) => {
      const page = await source.events(id, { from: offset, limit: 8, format: "task" } as EventsQuery, { signal });
      // A sequence number is 1,000 times the offset, and an agent_start can have the number before.
      return (page.events as unknown as { sequence: number }[]).filter(
        (e) => Math.floor((e.sequence + 1) / 1000) === offset,
      );
    },
  });
  if (!found.isSuccess) return <Waiting error={found.error} />;
  if (found.data.length === 0)
    return <p className="text-xs text-muted">The SSE task protocol has no event for this one.</p>;
  return <Plain text={found.data.map(pretty).join("\n")} label={`event ${offset} as a task event`} />;
}

function Waiting({ error }: { error: Error | null }) {
  if (error) return <p className="text-xs text-bad">{error.message}</p>;
  return <p className="text-xs text-muted">Loading…</p>;
}
