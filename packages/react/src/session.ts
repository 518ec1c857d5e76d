import type {
  Connection,
  Message,
  Permission,
  Plan,
  Resume,
  RewindTo,
  Rewound,
  Session,
  Started,
  State,
  Status,
  Task,
  ToolCall,
} from "@tapedeck/client";
import type { DeckState, Player } from "@tapedeck/client/player";
import { useMemo } from "react";
import { usePlayer } from "./player.ts";
import { useClient } from "./provider.ts";
import { useSharedPlayer } from "./shared.ts";

export interface SessionState {
  messages: Message[];
  toolCalls: ToolCall[];
  /** The questions of agents that wait for an answer. */
  permissions: Permission[];
  /** The shared state of the thread main. */
  state: State | null;
  plan: Plan | null;
  /** Of the runs of the session; undefined until the session is loaded. */
  status: Status | undefined;
  connection: Connection;
  /** Why the session could not be loaded, or the stream was refused. */
  error: unknown;
  /** The first events are on their way. */
  loading: boolean;
}

export interface SessionActions {
  /** Starts a task. The message has an id of its own, so that it can safely be sent again. */
  submit: (task: string | Task) => Promise<Started>;
  /** Cancels the open run. What the agent has said stays. */
  stop: (invocation?: string) => Promise<void>;
  resume: (t?: Resume) => Promise<Started>;
  answer: (p: Permission, option?: string) => Promise<void>;
  rewind: (to: RewindTo) => Promise<Rewound>;
  undo: (marker?: string) => Promise<Rewound>;
  fork: (o?: { at?: number; title?: string }) => Promise<Session>;
  /** Connects now, instead of at the end of the wait. */
  reconnect: () => void;
}

export interface UseSession extends SessionState, SessionActions {
  session: Session;
  /** The playhead, for `usePlayer`, seeking and playing. */
  player: Player;
}

const none: never[] = [];

function stateOf({ view, connection, error, seeking }: DeckState): SessionState {
  return {
    messages: view?.messages ?? none,
    toolCalls: view?.tool_calls ?? none,
    permissions: view?.permissions ?? none,
    state: view?.state ?? null,
    plan: view?.plan ?? null,
    status: view?.session.status,
    connection,
    error: error ?? (connection.state === "failed" ? connection.error : undefined),
    loading: !view && seeking && error === undefined,
  };
}

function actionsOf(session: Session, player: Player): SessionActions {
  return {
    submit: (task) => {
      const t = typeof task === "string" ? { task } : task;
      return session.task({ message_id: `msg_${crypto.randomUUID()}`, ...t });
    },
    stop: async (invocation) => {
      await session.cancel(invocation);
    },
    resume: (t) => session.resume(t),
    answer: (p, option) =>
      session.answer({ id: p.id, offset: p.offset, thread: p.thread, invocation: p.invocation }, option),
    rewind: (to) => session.rewind(to),
    undo: (marker) => session.undo(marker),
    fork: (o) => session.fork(o),
    reconnect: player.reconnect,
  };
}

/** A session as of its playhead, live unless the player is moved, and what can be done with it. */
export function useSession(id: string): UseSession {
  const client = useClient();
  const player = useSharedPlayer(client, id);
  const state = usePlayer(player, stateOf);
  const rest = useMemo(() => {
    const session = client.session(id);
    return { session, player, ...actionsOf(session, player) };
  }, [client, id, player]);
  return useMemo(() => ({ ...rest, ...state }), [rest, state]);
}
