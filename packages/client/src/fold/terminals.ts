import { read } from "./read.ts";
import type { Event } from "./types.ts";

export interface Size {
  cols: number;
  rows: number;
}

export interface TerminalInfo {
  id: string;
  thread: string;
  size?: Size; // absent if no event reported it
  exit?: string; // how its process ended, as text to display
  failed?: boolean; // its process failed
  offset: number; // of its last event
}

/** Larger sizes are reduced to this: no real terminal has them. */
const maxSize: Size = { cols: 400, rows: 200 };

/** The size that an event reports; undefined if it is not valid. */
export function sizeOf(e: Event): Size | undefined {
  const cols = e.data?.cols;
  const rows = e.data?.rows;
  if (!Number.isSafeInteger(cols) || !Number.isSafeInteger(rows)) return undefined;
  const [c, r] = [cols as number, rows as number];
  return c < 1 || r < 1 ? undefined : { cols: Math.max(2, Math.min(c, maxSize.cols)), rows: Math.min(r, maxSize.rows) };
}

/** The terminals of a session, with their size and exit. */
export class Terminals {
  private readonly byId = new Map<string, TerminalInfo>();

  get(id: string): TerminalInfo | undefined {
    return this.byId.get(id);
  }

  /** In the order of their first events. */
  list(): TerminalInfo[] {
    return [...this.byId.values()];
  }

  /** The terminal with the newest event. */
  newest(): TerminalInfo | undefined {
    let newest: TerminalInfo | undefined;
    for (const t of this.byId.values()) if (!newest || t.offset > newest.offset) newest = t;
    return newest;
  }

  apply(e: Event): void {
    const r = read(e);
    const id = r.str("terminal");
    if (id === "") return;
    const t: TerminalInfo = { ...(this.byId.get(id) ?? { id, thread: e.thread ?? "main" }), offset: e.offset };
    if (e.type === "terminal.resize") t.size = sizeOf(e) ?? t.size;
    if (e.type === "terminal.exit") {
      const code = r.raw("code");
      const signal = r.str("signal").slice(0, 20);
      t.exit = typeof code === "number" ? `exit ${code}` : signal || "ended";
      t.failed = code !== 0 && (typeof code === "number" || signal !== "");
    }
    if (e.type === "terminal.output" && t.exit !== undefined) {
      t.exit = undefined; // the terminal is in use again
      t.failed = undefined;
    }
    this.byId.set(id, t);
  }
}
