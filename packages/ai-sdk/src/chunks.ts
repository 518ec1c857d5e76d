import { TapedeckError } from "@tapedeck/client";
import { createParser } from "eventsource-parser";

/** A chunk of a UI message stream, with the members that matter here. Its other members are kept. */
export interface Chunk {
  type: string;
  id?: string;
  messageId?: string;
  toolCallId?: string;
  delta?: string;
  inputTextDelta?: string;
  messageMetadata?: unknown;
  [member: string]: unknown;
}

/** What ends a stream of chunks. */
export const done = Symbol("done");

/** Splits the text of a stream into chunks. A chunk may arrive in any number of pieces. */
export class ChunkParser {
  private ready: (Chunk | typeof done)[] = [];
  private pieces: string[] = []; // of a line without its end
  private readonly decoder = new TextDecoder();
  private readonly parser = createParser({
    onEvent: ({ data, event }) => {
      if (this.cut) return;
      const chunk = chunkOf(data);
      if (event !== "cut") this.ready.push(chunk);
      else if (chunk !== done && chunk.type === "error") this.cut = lost(String(chunk.errorText));
    },
  });
  /** Why the stream was ended before its run. The chunks of that end are not in the message. */
  cut: TapedeckError | undefined;

  take(bytes: Uint8Array): (Chunk | typeof done)[] {
    const text = this.decoder.decode(bytes, { stream: true });
    this.pieces.push(text);
    // The parser scans an incomplete line again with every piece: a line of 10 MB would take seconds.
    if (!/[\r\n]/.test(text)) return [];
    this.parser.feed(this.pieces.join(""));
    this.pieces = [];
    const { ready } = this;
    this.ready = [];
    return ready;
  }
}

function chunkOf(data: string): Chunk | typeof done {
  if (data === "[DONE]") return done;
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch (cause) {
    throw new TapedeckError("protocol", "the stream has a chunk that is no JSON", { cause });
  }
  if (typeof value === "object" && value !== null && typeof (value as Chunk).type === "string") return value as Chunk;
  throw new TapedeckError("protocol", "the stream has a chunk without a type");
}

/** The error of a connection that is lost. */
export function lost(message: string, cause?: unknown): TapedeckError {
  return new TapedeckError("unreachable", message, { cause });
}

/** The text that a delta adds, and the part to which it adds it; undefined for any other chunk. */
export function deltaOf(c: Chunk): { key: string; text: string } | undefined {
  const text = c.type === "tool-input-delta" ? c.inputTextDelta : c.delta;
  if (!c.type.endsWith("-delta") || typeof text !== "string") return undefined;
  return { key: `${c.type} ${c.toolCallId ?? c.id}`, text };
}

/** Whether a chunk is the last one of its message. */
export function isLast(c: Chunk): boolean {
  return c.type === "finish" || c.type === "abort" || c.type === "error";
}
