import { type Chunk, deltaOf, isLast } from "./chunks.ts";

/**
 * What has arrived of one message. When the connection is lost, the server sends the message
 * again from its start: the same chunks, but the deltas of a part may be joined in another way.
 * So chunks are skipped by their number, and deltas by the length of their part.
 */
export class Seen {
  /** The id of the message; undefined before its start. */
  message: string | undefined;
  /** The last run of the message that the stream has; undefined before its start. */
  run: string | undefined;
  /** The offset from which the stream has the message, if it continues one. */
  from: number | undefined;
  /** The offset before which the stream leaves out earlier attempts of a step; 0 if there were none. */
  attempts = 0;
  /** The last chunk has arrived. */
  ended = false;
  private chunks = 0;
  private lengths = new Map<string, number>();
  private skip = 0; // of the next chunks that are no deltas
  private skipText = new Map<string, number>();

  /** The message begins again. */
  restart(): void {
    this.skip = this.chunks;
    this.skipText = new Map(this.lengths);
  }

  /** Takes the next chunk, and returns what is new in it. */
  take(c: Chunk): Chunk | undefined {
    const delta = deltaOf(c);
    if (delta) return this.takeDelta(c, delta.key, delta.text);
    if (this.skip > 0) {
      this.skip--;
      return undefined;
    }
    this.chunks++;
    if (c.type === "start") this.begin(c);
    if (isLast(c)) this.ended = true;
    return c;
  }

  private takeDelta(c: Chunk, key: string, text: string): Chunk | undefined {
    const old = Math.min(this.skipText.get(key) ?? 0, text.length);
    if (old > 0) this.skipText.set(key, (this.skipText.get(key) ?? 0) - old);
    if (old > 0 && old === text.length) return undefined;
    this.lengths.set(key, (this.lengths.get(key) ?? 0) + text.length - old);
    if (old === 0) return c;
    const rest = text.slice(old);
    return c.type === "tool-input-delta" ? { ...c, inputTextDelta: rest } : { ...c, delta: rest };
  }

  private begin(c: Chunk): void {
    this.message = c.messageId;
    const { from, runs, attempts } = placeOf(c.messageMetadata);
    this.run = Array.isArray(runs) ? runs.at(-1) : c.messageId;
    if (typeof attempts === "number") this.attempts = attempts;
    this.from = typeof from === "number" ? from : undefined;
  }
}

/** Where in the log a message is. */
export interface Place {
  offset?: number;
  /** The first run of the message. */
  invocation?: string;
  /** All runs of the message, if it has more than one: its agent asked, and went on with the answer. */
  runs?: string[];
  /** The offset after the run of the message; without it the run is open, or was not seen to end. */
  next?: number;
  from?: number;
  attempts?: number;
  status?: string;
  error?: string;
}

/** The place in the metadata of a message of the server. */
export function placeOf(metadata: unknown): Place {
  const place = (metadata as { tapedeck?: unknown } | undefined)?.tapedeck;
  return typeof place === "object" && place !== null ? place : {};
}
