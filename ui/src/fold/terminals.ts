import { read } from "./read";
import type { Event } from "./types";

export interface Size {
  cols: number;
  rows: number;
}

export interface TerminalInfo {
  id: string;
  thread: string;
  size?: Size; // absent if nobody told it
  exit?: string; // how its process has ended, for people
  failed?: boolean; // it has ended badly
  offset: number; // of the last event of it
}

/** What is larger is no terminal that somebody had. */
const most: Size = { cols: 400, rows: 200 };

/** The size that an event tells; undefined if it makes no sense. */
export function sizeOf(e: Event): Size | undefined {
  const cols = e.data?.cols;
  const rows = e.data?.rows;
  if (!Number.isSafeInteger(cols) || !Number.isSafeInteger(rows)) return undefined;
  const [c, r] = [cols as number, rows as number];
  return c < 1 || r < 1 ? undefined : { cols: Math.max(2, Math.min(c, most.cols)), rows: Math.min(r, most.rows) };
}

/** Which terminals a session has, and how they are. */
export class Terminals {
  private readonly all = new Map<string, TerminalInfo>();

  get(id: string): TerminalInfo | undefined {
    return this.all.get(id);
  }

  /** In the order in which they came. */
  list(): TerminalInfo[] {
    return [...this.all.values()];
  }

  /** The one that has said something last. */
  newest(): TerminalInfo | undefined {
    let newest: TerminalInfo | undefined;
    for (const t of this.all.values()) if (!newest || t.offset > newest.offset) newest = t;
    return newest;
  }

  apply(e: Event): void {
    const r = read(e);
    const id = r.str("terminal");
    if (id === "") return;
    const t: TerminalInfo = { ...(this.all.get(id) ?? { id, thread: e.thread ?? "main" }), offset: e.offset };
    if (e.type === "terminal.resize") t.size = sizeOf(e) ?? t.size;
    if (e.type === "terminal.exit") {
      const code = r.raw("code");
      const signal = r.str("signal").slice(0, 20);
      t.exit = typeof code === "number" ? `exit ${code}` : signal || "ended";
      t.failed = code !== 0 && (typeof code === "number" || signal !== "");
    }
    if (e.type === "terminal.output" && t.exit !== undefined) {
      t.exit = undefined; // it was used again
      t.failed = undefined;
    }
    this.all.set(id, t);
  }
}
