import type { TapedeckError } from "@tapedeck/client";
import type { UIMessage } from "ai";
import { useCallback, useEffect, useRef, useState } from "react";
import type { Unsent } from "./active.ts";
import { Sync, type SyncConnection, type SyncedChat } from "./sync.ts";
import type { TapedeckTransport } from "./transport.ts";

export type { SyncConnection, SyncedChat } from "./sync.ts";

export interface TapedeckSync {
  /** Stops the open run, on all screens. It answers whether one was open. */
  stop: () => Promise<boolean>;
  /** The connection over which changes from elsewhere come. It is `idle` while the chat has not begun. */
  connection: SyncConnection;
  /** Why changes from elsewhere do not appear any more; undefined while they do. */
  error: TapedeckError | undefined;
}

export interface TapedeckSyncOptions<M extends UIMessage = UIMessage> {
  /**
   * Hears of each message of this page that was not sent, with the error: the chat was busy, or the
   * user has stopped the attempts. It is not in the chat any more, so give its text back.
   */
  onUnsent?: (unsent: Unsent<M>) => void;
}

/**
 * Shows in a chat of `useChat` what happens elsewhere: messages of a second tab, a phone or the
 * screen of Tapedeck, runs that are started there while they speak, rewinds, stops.
 */
export function useTapedeckSync<M extends UIMessage>(
  chat: SyncedChat<M>,
  transport: TapedeckTransport<M>,
  o: TapedeckSyncOptions<M> = {},
): TapedeckSync {
  const latest = useRef({ chat, transport, o });
  const sync = useRef<Sync<M>>(undefined);
  const [connection, setConnection] = useState<SyncConnection>({ state: "connecting" });
  const [error, setError] = useState<TapedeckError>();
  const { id } = chat;
  const { api } = transport;

  useEffect(() => {
    latest.current = { chat, transport, o };
    sync.current?.check();
  });

  // biome-ignore lint/correctness/useExhaustiveDependencies: another chat is another sync
  useEffect(() => {
    setError(undefined);
    const s = new Sync<M>(
      () => latest.current.transport,
      () => latest.current.chat,
      { onConnection: setConnection, onError: setError, onUnsent: (u) => latest.current.o.onUnsent?.(u) },
    );
    sync.current = s;
    s.start();
    return () => s.stop();
  }, [id, api]);

  const stop = useCallback(() => latest.current.transport.stop(latest.current.chat.id), []);
  return { stop, connection, error };
}
