// @tapedeck/ai-sdk/resumable-stream: what `resumable-stream` does with Redis, on a Tapedeck server.
import { type Client, type ClientOptions, createClient, TapedeckError } from "@tapedeck/client";

export interface ResumableStreamContextOptions extends ClientOptions {
  /** Keeps a program alive that is stopped when it has answered; null for a server that runs on. */
  waitUntil: ((promise: Promise<unknown>) => void) | null;
  /** The first segment of the paths of the streams; `resumable-stream` without it. */
  keyPrefix?: string;
  /** How long a stream is kept after it was last used, in seconds; a day without it. */
  ttlSeconds?: number;
}

export interface ResumableStreamContext {
  resumableStream: (
    streamId: string,
    makeStream: () => ReadableStream<string>,
    skipCharacters?: number,
  ) => Promise<ReadableStream<string> | null>;
  createNewResumableStream: (
    streamId: string,
    makeStream: () => ReadableStream<string>,
    skipCharacters?: number,
  ) => Promise<ReadableStream<string> | null>;
  resumeExistingStream: (
    streamId: string,
    skipCharacters?: number,
  ) => Promise<ReadableStream<string> | null | undefined>;
  hasExistingStream: (streamId: string) => Promise<null | true | "DONE">;
}

/** The interface of `createResumableStreamContext` of the package resumable-stream. The streams survive a kill of the server. */
export function createResumableStreamContext(o: ResumableStreamContextOptions): ResumableStreamContext {
  const { waitUntil, keyPrefix = "resumable-stream", ttlSeconds = 86_400 } = o;
  const client = createClient(o);
  const pathOf = (id: string) => `/v1/stream/${keyPrefix}/${encodeURIComponent(id)}`;

  const state = async (path: string): Promise<null | true | "DONE"> => {
    try {
      const { headers } = await client.request(path, { method: "HEAD" });
      return headers.get("Stream-Closed") === "true" ? "DONE" : true;
    } catch (error) {
      if (error instanceof TapedeckError && (error.status === 404 || error.status === 410)) return null;
      throw error;
    }
  };
  /** Whether the stream is new; one that exists stays as it is. */
  const create = async (path: string): Promise<boolean> => {
    const headers = { "Content-Type": "text/plain; charset=utf-8", "Stream-TTL": String(ttlSeconds) };
    try {
      return (await client.request(path, { method: "PUT", headers })).status === 201;
    } catch (error) {
      if (error instanceof TapedeckError && error.status === 409) return false; // it exists and is closed
      throw error;
    }
  };
  const write = (path: string, make: () => ReadableStream<string>) => {
    const written = pump(client, path, make()).catch(() => undefined); // readers see that it ends early
    waitUntil?.(written);
  };
  const resume = async (id: string, skip = 0) => {
    const path = pathOf(id);
    const is = await state(path);
    if (is === null) return undefined;
    return is === "DONE" ? null : read(client, path, skip);
  };
  const begin = async (id: string, make: () => ReadableStream<string>, skip = 0) => {
    write(pathOf(id), make);
    return read(client, pathOf(id), skip);
  };
  return {
    async resumableStream(id, make, skip) {
      if (await create(pathOf(id))) return begin(id, make, skip);
      return (await resume(id, skip)) ?? null;
    },
    async createNewResumableStream(id, make, skip) {
      if (await create(pathOf(id))) return begin(id, make, skip);
      throw new TapedeckError("conflict", `the stream ${id} exists already`, { hint: "resume it", status: 409 });
    },
    resumeExistingStream: resume,
    hasExistingStream: (id) => state(pathOf(id)),
  };
}

const [firstWaitMs, longestWaitMs, giveUpMs] = [250, 10_000, 120_000];

/** Writes a stream, each piece once. Pieces that come during an append share the next one. */
async function pump(client: Client, path: string, from: ReadableStream<string>): Promise<void> {
  const reader = from.getReader();
  const producer = crypto.randomUUID();
  let seq = 0;
  let [waiting, over] = ["", false];
  let failure: { error: unknown } | undefined;
  let sending: Promise<void> | undefined;
  const append = async (body: string, last: boolean) => {
    const headers = {
      "Content-Type": "text/plain; charset=utf-8",
      "Producer-Id": producer,
      "Producer-Epoch": "0",
      "Producer-Seq": String(seq),
      ...(last ? { "Stream-Closed": "true" } : {}),
    };
    await persist(() => client.request(path, { method: "POST", headers, body: body === "" ? null : body }));
    seq++;
  };
  const send = async () => {
    try {
      while (waiting !== "") {
        const body = waiting;
        waiting = "";
        await append(body, false);
      }
    } catch (error) {
      failure = { error };
    }
    sending = undefined;
  };
  try {
    while (!over && !failure) {
      const { done, value } = await reader.read();
      over = done;
      waiting += value ?? "";
      if (!done) sending ??= send();
      if (waiting.length > 1 << 20) await sending;
    }
    await sending;
    if (failure) throw failure.error;
    await append(waiting, true);
  } catch (error) {
    // Half a stream must not look like one that goes on.
    await append("", true).catch(() => undefined);
    throw error;
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

/** Repeats a request that can be repeated until the server answers. */
async function persist<T>(f: () => Promise<T>): Promise<T> {
  const since = Date.now();
  for (let waitMs = firstWaitMs; ; waitMs = Math.min(2 * waitMs, longestWaitMs)) {
    try {
      return await f();
    } catch (error) {
      const passes = error instanceof TapedeckError && error.retryable && Date.now() - since < giveUpMs;
      if (!passes) throw error;
      await new Promise((resolve) => setTimeout(resolve, Math.max(waitMs, error.retryAfterMs ?? 0)));
    }
  }
}

async function page(client: Client, path: string, signal: AbortSignal) {
  const answer = await client.request(path, { signal });
  try {
    return { answer, bytes: new Uint8Array(await answer.arrayBuffer()) };
  } catch (cause) {
    signal.throwIfAborted();
    throw new TapedeckError("unreachable", "the connection was lost before the end of the answer", { cause });
  }
}

/** Reads a stream from its start to its end, without its first characters. */
function read(client: Client, path: string, skip: number): ReadableStream<string> {
  const cut = new AbortController();
  const decoder = new TextDecoder();
  let [offset, left] = ["-1", skip];
  return new ReadableStream<string>(
    {
      async pull(c) {
        for (;;) {
          const query = `?offset=${encodeURIComponent(offset)}&live=long-poll`;
          const { answer, bytes } = await persist(() => page(client, path + query, cut.signal));
          offset = answer.headers.get("Stream-Next-Offset") ?? offset;
          const closed = answer.headers.get("Stream-Closed") === "true";
          const text = decoder.decode(bytes, { stream: !closed });
          const fresh = text.slice(Math.min(left, text.length));
          left -= text.length - fresh.length;
          if (fresh !== "") c.enqueue(fresh);
          if (closed) return c.close();
          if (fresh !== "") return;
        }
      },
      cancel: () => cut.abort(),
    },
    { highWaterMark: 0 },
  );
}
