import { TapedeckError } from "@tapedeck/client";
import { type Chunk, ChunkParser, done } from "./chunks.ts";
import { type Environment, surroundings } from "./environment.ts";
import { Seen } from "./seen.ts";

/** Opens the stream of a message again: of its rest, if it began at an offset. Without a message, of the open run. */
export type Reopen = (message: string | undefined, from: number | undefined, signal: AbortSignal) => Promise<Response>;

export interface Reconnecting {
  /** The number of this attempt, since the last chunk. */
  attempt: number;
  inMs: number;
  error: TapedeckError;
}

export interface StreamOptions {
  signal: AbortSignal;
  reopen: Reopen;
  /** A connection that is silent for this long is replaced, in milliseconds; 0 for never. */
  stallMs: number;
  /** Called before each wait, and with undefined when the connection is back. */
  onReconnect?: ((r: Reconnecting | undefined) => void) | undefined;
  environment?: Environment | undefined;
}

const [firstWaitMs, longestWaitMs] = [500, 15_000];

/**
 * The chunks of one message, each once and in order, through lost connections, restarts of the
 * server and sleep. It tries again until the server refuses.
 */
export async function* messageStream(first: Response, o: StreamOptions): AsyncGenerator<Chunk, Seen, void> {
  const env = o.environment ?? surroundings;
  const seen = new Seen();
  let response = first;
  for (let attempt = 0; ; ) {
    let failed: unknown;
    try {
      for await (const chunks of read(response, o.signal, o.stallMs, env)) {
        if (attempt > 0) o.onReconnect?.(undefined);
        attempt = 0;
        for (const chunk of chunks) {
          if (chunk === done) return seen;
          const fresh = seen.take(chunk);
          if (fresh) yield fresh;
        }
      }
      failed = lost("the stream was cut off");
    } catch (error) {
      failed = error;
    }
    for (;;) {
      o.signal.throwIfAborted();
      if (seen.ended) return seen; // only the mark of the end was missing
      const error = failed instanceof TapedeckError ? failed : lost("the connection was lost", failed);
      if (!passes(error)) throw error;
      const wait = Math.min(firstWaitMs * 2 ** Math.min(attempt++, 10), longestWaitMs) * (0.5 + env.random() / 2);
      const inMs = Math.max(wait, error.retryAfterMs ?? 0);
      o.onReconnect?.({ attempt, inMs, error });
      await pause(inMs, o.signal, env);
      try {
        response = checked(await o.reopen(seen.message, seen.from, o.signal));
        break;
      } catch (again) {
        failed = again;
      }
    }
    seen.restart();
  }
}

/** The portions in which the chunks of an answer arrive. */
async function* read(response: Response, signal: AbortSignal, stallMs: number, env: Environment) {
  const reader = response.body!.getReader();
  const parser = new ChunkParser();
  try {
    for (;;) {
      const { done: over, value } = await heard(reader.read(), signal, stallMs, env);
      if (over) return;
      yield parser.take(value);
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

/** Waits for the server, but not for longer than a living connection is silent. */
async function heard<T>(next: Promise<T>, signal: AbortSignal, stallMs: number, env: Environment): Promise<T> {
  signal.throwIfAborted();
  let stop: (() => void) | undefined;
  let timer: unknown;
  const early = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    signal.addEventListener("abort", stop);
    const stalled = () => reject(lost(`the stream was silent for ${Math.round(stallMs / 1000)} s`));
    if (stallMs > 0) timer = env.setTimeout(stalled, stallMs);
  });
  try {
    return await Promise.race([next, early]);
  } finally {
    if (stop) signal.removeEventListener("abort", stop);
    if (timer !== undefined) env.clearTimeout(timer);
  }
}

/** Waits before the next attempt. A device that is back ends the wait. */
function pause(ms: number, signal: AbortSignal, env: Environment): Promise<void> {
  return new Promise((resolve) => {
    const over = () => {
      env.clearTimeout(timer);
      signal.removeEventListener("abort", over);
      stopWaking();
      resolve();
    };
    const timer = env.setTimeout(over, ms);
    const stopWaking = env.onWake(over);
    signal.addEventListener("abort", over);
    if (signal.aborted) over();
  });
}

/** An answer that is a stream of chunks. A proxy may have answered something else. */
export function checked(response: Response): Response {
  const type = (response.headers.get("Content-Type") ?? "").toLowerCase();
  if (type.startsWith("text/event-stream") && response.body) return response;
  void response.body?.cancel().catch(() => undefined);
  if (response.status === 204) throw new TapedeckError("gone", "the run has ended", { status: 204 });
  const what = type.split(";")[0] || "no content type";
  throw new TapedeckError("protocol", `the server answered with ${what}, not with a stream of chunks`, {
    hint: "a proxy may have answered: is a Tapedeck server, or a route that uses it, at this address?",
    status: response.status,
  });
}

function lost(message: string, cause?: unknown): TapedeckError {
  return new TapedeckError("unreachable", message, { cause });
}

/** Whether an error may pass by itself. The page of a proxy with a status of success may: it is up before the server is. */
function passes(e: TapedeckError): boolean {
  return e.retryable || (e.kind === "protocol" && (e.status === 0 || (e.status >= 200 && e.status < 300)));
}

/** A stream of what a generator yields. A generator that was never read must be ended by `cancel`, too. */
export function streamOf<T>(g: AsyncGenerator<T, unknown, void>, cancel: () => void): ReadableStream<T> {
  return new ReadableStream<T>(
    {
      async pull(c) {
        const next = await g.next();
        if (next.done) c.close();
        else c.enqueue(next.value);
      },
      cancel,
    },
    { highWaterMark: 0 },
  );
}
