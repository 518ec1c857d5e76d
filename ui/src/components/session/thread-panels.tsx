import { useQuery } from "@tanstack/react-query";
import type { Snapshot } from "@tapedeck/client";
import { useMemo } from "react";
import { api } from "@/client";
import { MiniConversation } from "../conversation/mini-conversation";
import type { RowActions } from "../conversation/rows";
import { StatusChip } from "../status";
import { Button, IconButton } from "../ui";
import { onlyThread } from "./part";

interface Props {
  id: string;
  names: string[];
  view: Snapshot;
  /** The number of jumps: each one may change the older messages. */
  jumps: number;
  live: boolean;
  onClose: (thread: string) => void;
  onClear?: (thread: string) => void;
  onAnswer: RowActions["onAnswer"];
}

/** A panel for each given thread, beside the conversation; on a narrow screen over it. */
export function ThreadPanels({ names, ...rest }: Props) {
  return (
    <div className="flex min-h-0 max-lg:absolute max-lg:inset-y-0 max-lg:right-0 max-lg:z-20 max-lg:max-w-full">
      {names.map((name) => (
        <ThreadPanel key={name} name={name} {...rest} />
      ))}
    </div>
  );
}

interface PanelProps extends Omit<Props, "names"> {
  name: string;
}

function ThreadPanel({ id, name, view, jumps, live, onClose, onClear, onAnswer }: PanelProps) {
  const older = useOlder(id, name, view, jumps);
  const parts = useMemo(() => joined(older, onlyThread(view, name)), [older, view, name]);
  const thread = view.threads.find((t) => t.name === name);
  const working = live && thread?.status === "running";
  const typing = [...parts.messages, ...parts.tool_calls].some((i) => i.status === "running");
  const asks = parts.permissions?.some((p) => p.status === "open");
  const nothing = parts.messages.length + parts.tool_calls.length + (parts.permissions?.length ?? 0) === 0;
  return (
    <aside
      aria-label={`Thread ${name}`}
      className="flex w-80 min-w-0 shrink flex-col border-l border-line bg-panel max-lg:shadow-xl"
    >
      <div className="flex items-center gap-2 border-b border-line py-1 pr-1 pl-3 text-[13px]">
        <h2 className="min-w-0 flex-1 truncate font-medium" title={name}>
          {name}
        </h2>
        {thread && <StatusChip status={thread.status} />}
        {onClear && !nothing && (
          <Button look="ghost" onClick={() => onClear(name)}>
            Clear
          </Button>
        )}
        <IconButton label={`Close ${name}`} icon="close" onClick={() => onClose(name)} />
      </div>
      {nothing && !working ? (
        <p className="p-6 text-center text-[13px] text-muted">No messages in this thread.</p>
      ) : (
        <MiniConversation
          parts={parts}
          label={`Conversation in ${name}`}
          still={!live}
          waiting={working && !typing && !asks}
          onAnswer={onAnswer}
          className="min-h-0 flex-1"
        />
      )}
    </aside>
  );
}

type Parts = Pick<Snapshot, "messages" | "tool_calls" | "runs" | "permissions">;

/** Loads the older part of a thread, which the page does not have, in one snapshot. Only long sessions need it. */
export function useOlder(id: string, thread: string, view: Snapshot, jumps: number): Snapshot | undefined {
  const first = Math.min(...view.messages.map((m) => m.offset), view.at);
  const { data } = useQuery({
    // The window of the page moves with new messages, and overlaps the snapshot for long.
    queryKey: ["thread", id, thread, jumps, Math.floor(first / 500)],
    queryFn: ({ signal }) => api.snapshot(id, { at: view.at, thread }, { signal }),
    enabled: (view.earlier ?? 0) > 0,
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: (old) => old,
  });
  return (view.earlier ?? 0) > 0 ? data : undefined;
}

/** Puts the older items before those of the page. */
export function joined(older: Snapshot | undefined, now: Parts & { at: number }): Parts {
  if (!older) return now;
  const first = Math.min(...[...now.messages, ...now.tool_calls, ...now.runs].map((i) => i.offset), now.at);
  const before = <T extends { offset: number }>(items: T[]) => items.filter((i) => i.offset < first);
  return {
    messages: [...before(older.messages), ...now.messages],
    tool_calls: [...before(older.tool_calls), ...now.tool_calls],
    runs: [...before(older.runs), ...now.runs],
    permissions: now.permissions,
  };
}
