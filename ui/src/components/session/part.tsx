import type { Connection, Marker, Permission, SessionInfo } from "@tapedeck/client";
import type { Deck } from "@tapedeck/client/player";
import type { Hidden } from "@/components/events/raw-events";
import { useAgents } from "@/hooks/agents";
import { useViewer } from "@/hooks/viewer";
import { isJump } from "../conversation/rows";
import { Button, Notice } from "../ui";
import { emptyText } from "./empty";
import { refusalOf } from "./no-field";

/** The ranges of events that are reverted at the playhead, of one thread or of all. */
export function hiddenBy(marks: Marker[], deck: Deck): Hidden[] {
  return marks.filter(isJump).flatMap((m) => {
    const data = deck.event(m.offset)?.data;
    const thread = data ? data.thread : m.thread;
    const along = Array.isArray(data?.with) ? data.with : []; // threads of sub-agents
    return [thread, ...along].map((t) => ({
      from: m.to_offset ?? 0,
      to: m.offset,
      thread: typeof t === "string" ? t : undefined,
    }));
  });
}

/**
 * The part of a view that belongs to one thread. Without a thread: all threads
 * except those of sub-agents, which are represented by their tool calls.
 */
export function onlyThread<
  V extends {
    threads?: { name: string; parent?: string }[];
    messages: { thread: string }[];
    tool_calls: { thread: string }[];
    runs: { thread: string }[];
    permissions?: Permission[];
  },
>(view: V, thread?: string): V {
  const subs = new Set(view.threads?.filter((t) => t.parent).map((t) => t.name));
  if (!thread && subs.size === 0) return view;
  const is = (i: { thread: string }) => (thread ? i.thread === thread : !subs.has(i.thread));
  return {
    ...view,
    messages: view.messages.filter(is),
    tool_calls: view.tool_calls.filter(is),
    runs: view.runs.filter(is),
    permissions: view.permissions?.filter(is),
  };
}

/** How many events are looked at for terminal output. */
const looked = 50;

/** Whether a session begins with the output of a terminal, as an imported cast does. */
export function hasTerminal(deck: Deck, head: number): boolean {
  for (let i = 0; i < Math.min(head, looked); i++) if (deck.event(i)?.channel === "terminal") return true;
  return false;
}

interface NoRowsProps {
  live: boolean;
  session: SessionInfo;
  connection: Connection;
  zen: boolean;
  onTerminal?: () => void;
}

/** Stands for a conversation without rows. */
export function NoRows({ live, session, connection, zen, onTerminal }: NoRowsProps) {
  const agents = useAgents().data;
  const refusal = refusalOf(connection, session, useViewer());
  return (
    <div className="min-h-0 flex-1 overflow-y-auto">
      {onTerminal ? (
        <Notice title="Only a terminal">
          <p>This session has terminal output, and no messages.</p>
          <Button look="primary" className="mt-3" onClick={onTerminal}>
            Show the terminal
          </Button>
        </Notice>
      ) : (
        <Notice title="No messages yet">{emptyText(live, refusal, !zen && agents?.length !== 0)}</Notice>
      )}
    </div>
  );
}

/** Says that reverted events are shown, and leads back. */
export function PeekBar({ onBack, onUndo }: { onBack: () => void; onUndo?: () => void }) {
  return (
    <div
      role="status"
      className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b border-line bg-accent-soft px-4 py-1.5 text-[13px]"
    >
      <span className="min-w-48 flex-1">These events were reverted later. You look at the past; nothing changes.</span>
      <Button onClick={onBack}>Back to now</Button>
      {onUndo && (
        <Button icon="undo" onClick={onUndo}>
          Undo
        </Button>
      )}
    </div>
  );
}

export function ThreadBar({ name, onAll }: { name: string; onAll: () => void }) {
  return (
    <div className="flex items-center gap-3 border-b border-line px-4 py-1.5 text-[13px]">
      Showing only thread <span className="font-medium">{name}</span>
      <button type="button" onClick={onAll} className="text-accent hover:underline">
        Show all threads
      </button>
    </div>
  );
}
