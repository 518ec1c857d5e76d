/** The streams of one chat on this page, for those who must not load its messages meanwhile. */
export class Active {
  /** How many requests and streams are open. */
  streams = 0;
  /** The messages whose streams this page has seen to their end. */
  readonly ended = new Set<string>();
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
