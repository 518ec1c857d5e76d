import type { EventsPage } from "../api.ts";
import type { Event } from "../fold/types.ts";

/** The number of offsets in a chunk: the server's largest page. */
export const chunkSize = 1000;

type Fetch = (from: number, limit: number) => Promise<EventsPage>;

interface Chunk {
  events: (Event | undefined)[]; // index 0 is the first offset of the chunk
  from: number; // the loaded range starts at this offset
  to: number; // and ends before this one
  loading: Promise<void> | undefined;
}

/** The loaded events of a session, by offset. */
export class Events {
  private readonly chunks = new Map<number, Chunk>(); // in the order of last use
  private readonly fetch: Fetch;
  private readonly onLoad: (events: Event[]) => void;
  maxChunks = 64; // chunks kept in memory
  head = 0;

  constructor(fetch: Fetch, onLoad: (events: Event[]) => void) {
    this.fetch = fetch;
    this.onLoad = onLoad;
  }

  get(offset: number): Event | undefined {
    const n = Math.floor(offset / chunkSize);
    return this.chunks.get(n)?.events[offset - n * chunkSize];
  }

  /** Adds the event that follows the head. */
  push(e: Event): void {
    const n = Math.floor(e.offset / chunkSize);
    const c = this.chunk(n, e.offset);
    c.events[e.offset - n * chunkSize] = e;
    if (c.to === e.offset) c.to++;
    this.head = Math.max(this.head, e.offset + 1);
  }

  private chunk(n: number, from: number): Chunk {
    let c = this.chunks.get(n);
    if (!c) {
      c = { events: [], from, to: from, loading: undefined };
      this.chunks.set(n, c);
      this.evict();
    }
    return c;
  }

  private evict(): void {
    for (const [n, c] of this.chunks) {
      if (this.chunks.size <= this.maxChunks) return;
      if (!c.loading && c.to < this.head) this.chunks.delete(n);
    }
  }

  /** Whether all events of a range are loaded. */
  has(from: number, to: number): boolean {
    return this.missing(from, to).length === 0;
  }

  private missing(from: number, to: number): number[] {
    const out: number[] = [];
    to = Math.min(to, this.head);
    for (let n = Math.floor(from / chunkSize); n * chunkSize < to; n++) {
      const c = this.chunks.get(n);
      const [first, last] = [Math.max(from, n * chunkSize), Math.min(to, (n + 1) * chunkSize)];
      if (!c || c.from > first || c.to < last) out.push(n);
    }
    return out;
  }

  /** Loads the missing chunks of a range, four at a time. */
  async load(from: number, to: number): Promise<void> {
    const missing = this.missing(from, to);
    const worker = async () => {
      for (let n = missing.shift(); n !== undefined; n = missing.shift()) await this.loadChunk(n);
    };
    await Promise.all([worker(), worker(), worker(), worker()]);
  }

  private loadChunk(n: number): Promise<void> {
    const c = this.chunk(n, n * chunkSize);
    this.chunks.delete(n); // now the last used
    this.chunks.set(n, c);
    c.loading ??= this.fill(n, c).finally(() => {
      c.loading = undefined;
    });
    return c.loading;
  }

  private async fill(n: number, c: Chunk): Promise<void> {
    const first = n * chunkSize;
    const end = Math.min(first + chunkSize, this.head);
    // Events from the stream may already be loaded behind the missing ones.
    const missingEnd = c.from > first ? c.from : end;
    let from = c.from > first ? first : c.to;
    while (from < missingEnd) {
      const page = await this.fetch(from, missingEnd - from);
      for (const e of page.events) c.events[e.offset - first] = e;
      this.onLoad(page.events);
      if (page.next <= from) break; // the server has no more events
      from = page.next;
    }
    c.from = first;
    c.to = Math.max(c.to, from);
    while (c.events[c.to - first]) c.to++; // events from the stream that arrived meanwhile
  }
}
