import { type Environment, type Place, surroundings, TapedeckError, visited, visitPause } from "@tapedeck/client";
import { type Chunk, ChunkParser, done, lost } from "./chunks.ts";
import { Seen } from "./seen.ts";

/** Opens the stream of which something was seen again. If that has no message yet, of the open run. */
export type Reopen = (seen: Seen, signal: AbortSignal) => Promise<Response>;

export interface Reconnecting {
  /** The number of this attempt, since the last chunk. */
  attempt: number;
  inMs: number;
  error: TapedeckError;
}

export interface StreamOptions {
  /** The address of the server. */
  api: string;
  signal: AbortSignal;
  reopen: Reopen;
  /** A connection that is silent for this long is replaced, in milliseconds; 0 for never. */
  stallMs: number;
  /** Called before each wait, and with undefined when the connection is back. */
  onReconnect?: ((r: Reconnecting | undefined) => void) | undefined;
  environment?: Environment | undefined;
}

const [firstWaitMs, longestWaitMs] = [500, 15_000];
/** A stream without a place is read for this long. */
const visitMs = 1000;

/**
 * The chunks of one message, each once and in order, through lost connections, restarts of the
 * server and sleep. It tries again until the server refuses.
 */
export async function* messageStream(first: Response, o: StreamOptions): AsyncGenerator<Chunk, Seen, void> {
  const env = o.environment ?? surroundings;
  const seen = new Seen();
  let response = first;
  let attempt = 0; // since the last chunk that was new: a stream may break at the same place each time
  let away = false; // the user has been told so
  for (;;) {
    let failed: unknown;
    try {
      for await (const chunks of read(response, o, env)) {
        if (away) o.onReconnect?.(undefined);
        away = false;
        for (const chunk of chunks) {
          if (chunk === done) return seen;
          const fresh = seen.take(chunk);
          if (!fresh) continue;
          attempt = 0;
          yield fresh;
        }
      }
      failed = lost("the stream was cut off");
    } catch (error) {
      failed = error;
    }
    for (;;) {
      o.signal.throwIfAborted();
      if (seen.ended) return seen; // only the mark of the end was missing
      let inMs = visitPause();
      if (failed !== visited) {
        const error = failed instanceof TapedeckError ? failed : lost("the connection was lost", failed);
        if (!passes(error)) throw error;
        const wait = Math.min(firstWaitMs * 2 ** Math.min(attempt++, 10), longestWaitMs) * (0.5 + env.random() / 2);
        inMs = Math.max(wait, error.retryAfterMs ?? 0);
        o.onReconnect?.({ attempt, inMs, error });
        away = true;
      }
      await pause(inMs, o.signal, env);
      try {
        response = checked(await reopened(o, seen, env));
        break;
      } catch (again) {
        failed = again;
      }
    }
    seen.restart();
  }
}

/** Opens the stream again. A server may accept the connection and never answer. */
async function reopened(o: StreamOptions, seen: Seen, env: Environment): Promise<Response> {
  o.signal.throwIfAborted();
  const cut = new AbortController(); // of the request, and then of its answer
  const stop = () => cut.abort(o.signal.reason);
  o.signal.addEventListener("abort", stop);
  try {
    return await heard(o.reopen(seen, cut.signal), o.signal, o.stallMs, env);
  } catch (error) {
    o.signal.removeEventListener("abort", stop);
    cut.abort(error);
    throw error;
  }
}

/** The portions in which the chunks of an answer arrive. It fails with `visited` where a stream without a place ends. */
async function* read(response: Response, { api, signal, stallMs }: StreamOptions, env: Environment) {
  const reader = response.body!.getReader();
  const parser = new ChunkParser();
  const cut = new AbortController();
  const leave = () => cut.abort(visited);
  const stop = () => cut.abort(signal.reason);
  signal.addEventListener("abort", stop);
  let place: Place | undefined;
  let timer: unknown;
  try {
    place = await env.place(api, "answer", leave);
    if (!place) timer = env.setTimeout(leave, visitMs);
    for (;;) {
      signal.throwIfAborted();
      const { done: over, value } = await heard(reader.read(), cut.signal, stallMs, env);
      if (over) return;
      yield parser.take(value);
      if (parser.cut) throw parser.cut;
    }
  } finally {
    reader.cancel().catch(() => undefined);
    place?.leave();
    env.clearTimeout(timer);
    signal.removeEventListener("abort", stop);
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
  throw foreign(response, "a stream of chunks");
}

/** The error of an answer that is not what was asked for: mostly the page of a proxy. */
export function foreign(response: Response, wanted: string): TapedeckError {
  const type = response.headers.get("Content-Type")?.split(";")[0] || "no content type";
  return new TapedeckError("protocol", `the server answered with ${type}, not with ${wanted}`, {
    hint: "a proxy may have answered: is a Tapedeck server, or a route that uses it, at this address?",
    status: response.status,
  });
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
