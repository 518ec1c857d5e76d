import { createParser } from "eventsource-parser";
import type { Event } from "./fold/types.ts";
import type { PresenceEvent } from "./people.ts";

/**
 * A frame of a stream, as docs/http.md describes it. `life` is the incarnation of the session,
 * as its cursors have it: "@3", or "" where it is not said.
 */
export type Frame =
  | { kind: "event"; event: Event; next: number; life: string }
  | { kind: "broken" } // data that is no JSON, or no event
  | { kind: "caught-up"; next: number | undefined; life: string }
  | { kind: "presence"; event: PresenceEvent }
  | { kind: "end"; reason: string | undefined; next: number | undefined; life: string };

/** Splits the text of a stream into frames. A frame may arrive in any number of pieces. */
export class Frames {
  private ready: Frame[] = [];
  private pieces: string[] = []; // of a line without its end
  private readonly decoder = new TextDecoder();
  private readonly parser = createParser({
    onEvent: (m) => {
      const frame = frameOf(m.event ?? "message", m.data, m.id);
      if (frame) this.ready.push(frame);
    },
  });

  /** Takes the next bytes, and returns the frames that they complete. */
  take(bytes: Uint8Array): Frame[] {
    const text = this.decoder.decode(bytes, { stream: true });
    this.pieces.push(text);
    // The parser scans an incomplete line again with every piece: a line of 10 MB would take seconds.
    if (!/[\r\n]/.test(text)) return [];
    const whole = this.pieces.join("");
    this.pieces = [];
    this.parser.feed(whole);
    const { ready } = this;
    this.ready = [];
    return ready;
  }
}

function frameOf(type: string, data: string, id: string | undefined): Frame | undefined {
  const value = parse(data);
  const [, offset, idLife] = /^(\d+)(@\d+)?$/.exec(id ?? "") ?? [];
  const after = offset === undefined ? undefined : Number(offset) + 1;
  const life = idLife ?? /@\d+$/.exec(String(value?.cursor ?? ""))?.[0] ?? "";
  switch (type) {
    case "message":
      return isEvent(value) ? { kind: "event", event: value, next: value.offset + 1, life } : { kind: "broken" };
    case "caught-up":
      return { kind: "caught-up", next: after, life };
    case "presence":
      return value ? { kind: "presence", event: value as unknown as PresenceEvent } : undefined;
    case "end":
      return { kind: "end", reason: typeof value?.reason === "string" ? value.reason : undefined, next: after, life };
  }
  return undefined; // of a newer server
}

function parse(data: string): Record<string, unknown> | undefined {
  try {
    const value = JSON.parse(data);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function isEvent(value: unknown): value is Event {
  const e = value as Partial<Event> | undefined;
  return e !== undefined && Number.isSafeInteger(e.offset) && typeof e.type === "string";
}
