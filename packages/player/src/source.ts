import { createClient, type Envelope, type SessionEntry, TapedeckError } from "@tapedeck/client";
import { createPlayer, type Player, type Recording } from "@tapedeck/client/player";

/** The address of a session: its page, or its end point of the HTTP API. */
const sessionAddress = /^(.*)\/(?:api\/v1\/sessions|s)\/([^/]+)\/?$/;

/** Opens what an address names: a session of a server, or an export of the format json or ndjson. */
export async function open(src: string, at: number | undefined, signal: AbortSignal): Promise<Player> {
  const url = new URL(src, document.baseURI);
  const session = sessionAddress.exec(url.pathname);
  if (session) {
    const client = createClient({ url: url.origin + session[1] });
    return createPlayer(client.session(decodeURIComponent(session[2] ?? "")), { at });
  }
  let text: string;
  try {
    const response = await fetch(url, { signal });
    if (!response.ok) throw new Error(`the answer has status ${response.status}`);
    text = await response.text();
  } catch (cause) {
    if (signal.aborted) throw cause;
    const why = cause instanceof Error ? cause.message : "";
    throw new TapedeckError("unreachable", `the recording cannot be loaded: ${why}`, { cause });
  }
  return createPlayer(read(text), { at: at ?? 1 });
}

/** Reads an export: one JSON document, or a header and one event in each line. */
export function read(text: string): Recording {
  const whole = parse(text);
  if (isHeader(whole)) return checked(whole.session, whole.events);
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const header = parse(lines[0] ?? "");
  if (!isHeader(header)) throw notExport();
  return checked(
    header.session,
    lines.slice(1).map((line) => parse(line)),
  );
}

interface Header {
  tapedeck: number;
  session?: Partial<SessionEntry>;
  events?: unknown;
}

function isHeader(v: unknown): v is Header {
  return typeof v === "object" && v !== null && "tapedeck" in v && v.tapedeck === 1;
}

function checked(session: Partial<SessionEntry> | undefined, events: unknown): Recording {
  if (!Array.isArray(events) || !events.every(isEvent)) throw notExport();
  return { ...(session ? { session } : {}), events };
}

function isEvent(v: unknown): v is Envelope {
  if (typeof v !== "object" || v === null) return false;
  const e = v as Partial<Envelope>;
  return typeof e.offset === "number" && typeof e.type === "string" && typeof e.timestamp === "string";
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function notExport(): TapedeckError {
  return new TapedeckError("invalid", "the file is not an export of a session", {
    hint: "export the session with the format json or ndjson",
  });
}
