import type { TapedeckError } from "@tapedeck/client";
import type { UIMessage } from "ai";

/** A message of the user that could not be sent. */
export interface Unsent<M extends UIMessage = UIMessage> {
  message: M;
  error: TapedeckError;
}

/** The streams of one chat on this page, for those who must not load its messages meanwhile. */
export class Active {
  /** How many requests and streams are open. */
  streams = 0;
  /** The runs whose streams this page has seen to their end. */
  readonly ended = new Set<string>();
  /** The messages that this page could not send, by their ids, until the chat has been brought up to date. */
  readonly unsent = new Map<string, Unsent>();
  private readonly listeners = new Set<() => void>();

  enter(): () => void {
    this.streams++;
    let open = true;
    return () => {
      if (!open) return;
      open = false;
      this.streams--;
      for (const f of this.listeners) f();
    };
  }

  onIdle(f: () => void): () => void {
    this.listeners.add(f);
    return () => this.listeners.delete(f);
  }
}

// A page may make a new transport each time it is drawn, so the transport cannot hold them.
const all = new Map<string, Active>();

export function activeOf(api: string, chat: string): Active {
  const key = `${api}\n${chat}`;
  let active = all.get(key);
  if (!active) {
    active = new Active();
    all.set(key, active);
  }
  return active;
}
