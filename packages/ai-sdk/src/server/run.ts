import { type Client, type Session, TapedeckError } from "@tapedeck/client";
import type { UIMessage, UIMessageChunk } from "ai";
import type { Chunk } from "../chunks.ts";
import { pathOf } from "../transport.ts";
import { Outbox } from "./outbox.ts";
import { Recorder } from "./recorder.ts";

/** What `streamText` returns, in all versions of the AI SDK. */
export interface StreamResult {
  toUIMessageStream(options?: object): ReadableStream<unknown> | AsyncIterable<unknown>;
}

/** The stream of an agent: what `streamText` returns, or chunks of a UI message stream. */
export type RunSource = StreamResult | ReadableStream<UIMessageChunk> | AsyncIterable<UIMessageChunk>;

export interface RunContext {
  client: Client;
  agent: string;
  version: number;
  waitUntil: ((promise: Promise<unknown>) => void) | undefined;
  giveUpMs: number;
  aliveMs: number;
}

/** A run of an agent of this program. It is open from its making until its stream has ended. */
export class Run {
  /** The id of the message of the agent. */
  readonly id: string;
  /** Aborts when somebody stops the run, on any screen. Give it to `streamText`. */
  readonly signal: AbortSignal;
  private readonly c: RunContext;
  private readonly session: Session;
  private readonly messages: UIMessage[];
  private readonly recorder: Recorder;
  private readonly outbox: Outbox;
  private readonly stop = new AbortController();
  private readonly over = new AbortController(); // nobody listens for a stop any more
  private readonly gaveUp = new AbortController();
  private ending = false;
  private lastPut = 0;

  private constructor(c: RunContext, session: Session, messages: UIMessage[]) {
    [this.c, this.session, this.messages] = [c, session, messages];
    this.id = `inv_${crypto.randomUUID()}`;
    this.signal = this.stop.signal;
    this.recorder = new Recorder(this.id, `agent:${c.agent}`);
    this.outbox = new Outbox(this.producer());
  }

  /** Begins a run in the log. It fails if the chat is busy. */
  static async begin(c: RunContext, session: Session, messages: UIMessage[]): Promise<Run> {
    const run = new Run(c, session, messages);
    await run.outbox.put([run.recorder.begin(c.agent)]);
    await run.outbox.flush();
    void run.listen();
    return run;
  }

  /** A writer that waits for a server that is away, but not without end. */
  private producer() {
    let since = 0;
    return this.session.producer(this.id, {
      signal: this.gaveUp.signal,
      onRetry: (attempt, error) => {
        if (attempt === 1) since = Date.now();
        if (Date.now() - since > this.c.giveUpMs) this.gaveUp.abort(error);
      },
    });
  }

  /** Hears who ends the run. */
  private async listen(): Promise<void> {
    const signal = this.over.signal;
    try {
      const type = ["RUN_FINISHED", "RUN_ERROR"];
      for await (const e of this.session.follow({ invocation: this.id, until: "terminal", type, signal })) {
        if (e.invocation === this.id && type.includes(e.type)) this.ended();
      }
    } catch {
      // An append meets the same error. Without one, a stop is heard by the next append.
    }
  }

  /** The run has ended in the log: by itself, or because somebody stopped it. */
  private ended(): void {
    if (!this.ending) this.stop.abort(new DOMException("the run was stopped", "AbortError"));
  }

  /**
   * Records what the agent says while it says it, and answers with the stream of the log: the
   * page that asked gets the same as every other one, and nothing that is not durable. If the page
   * disconnects, the agent continues. `options` are those of `toUIMessageStream`.
   */
  async respond(source: RunSource, options: object = {}): Promise<Response> {
    const recorded = this.record(
      chunksOf(source, {
        originalMessages: this.messages,
        generateMessageId: () => this.id,
        ...options,
      }),
    );
    this.c.waitUntil?.(recorded);
    const path = `/aisdk/default${pathOf(this.session.id)}/stream?message=${this.id}`;
    const headers = { Accept: "text/event-stream", "Tapedeck-AI-SDK-Version": String(this.c.version) };
    const { body } = await this.c.client.request(path, { headers });
    return new Response(body, { headers: streamHeaders });
  }

  /** Ends the run with an error, for an agent that has no stream. */
  async fail(message: string): Promise<void> {
    this.ending = true;
    this.over.abort();
    await this.outbox.put(this.recorder.fail(message));
    await this.outbox.flush();
  }

  private async record(chunks: AsyncIterable<Chunk>): Promise<void> {
    const alive = setInterval(() => void this.keepAlive(), this.c.aliveMs);
    try {
      for await (const chunk of until(this.signal, chunks)) {
        const events = this.recorder.add(chunk);
        this.ending ||= this.recorder.ended; // before the event, because the follower hears it, too
        await this.put(events);
      }
      if (!this.signal.aborted && !this.recorder.ended)
        await this.broken("the stream of the agent ended before its message did");
      await this.outbox.flush();
    } catch (error) {
      if (this.signal.aborted) return;
      this.stop.abort(error);
      await this.broken(error instanceof Error ? error.message : String(error)).catch(() => undefined);
    } finally {
      clearInterval(alive);
      this.over.abort();
    }
  }

  private async put(events: Parameters<Outbox["put"]>[0]): Promise<void> {
    if (events.length === 0) return;
    this.lastPut = Date.now();
    await this.outbox.put(events);
  }

  private async broken(message: string): Promise<void> {
    this.ending = true;
    await this.outbox.put(this.recorder.fail(message, "lease_expired")); // as the server ends a stream that breaks off
    await this.outbox.flush();
  }

  /** An agent that is silent for long must say that it is alive, or the server ends its run. */
  private async keepAlive(): Promise<void> {
    if (this.recorder.ended || this.signal.aborted || Date.now() - this.lastPut < this.c.aliveMs) return;
    await this.put([this.recorder.alive()]).catch(() => undefined); // the next chunk meets the same error
  }
}

/** The headers of a UI message stream. */
export const streamHeaders = {
  "Content-Type": "text/event-stream",
  "Cache-Control": "no-cache",
  "X-Vercel-AI-UI-Message-Stream": "v1",
  "X-Accel-Buffering": "no",
};

async function* chunksOf(source: RunSource, options: object): AsyncGenerator<Chunk, void, void> {
  const stream = "toUIMessageStream" in source ? source.toUIMessageStream(options) : source;
  for await (const chunk of asIterable(stream as ReadableStream<Chunk> | AsyncIterable<Chunk>)) {
    if (typeof chunk !== "object" || chunk === null || typeof chunk.type !== "string")
      throw new TapedeckError("invalid", "the stream of the agent has something that is no chunk", {
        hint: "give what streamText returns, or a stream of UIMessageChunk",
      });
    yield chunk;
  }
}

/** What a source yields until the signal aborts. A source may not hear of that, or hear it late. */
async function* until<T>(signal: AbortSignal, source: AsyncIterable<T>): AsyncGenerator<T, void, void> {
  const items = source[Symbol.asyncIterator]();
  const stopped = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
  try {
    while (!signal.aborted) {
      const next = await Promise.race([items.next(), stopped]);
      if (!next || next.done || signal.aborted) return;
      yield next.value;
    }
  } finally {
    void items.return?.().catch(() => undefined); // it may wait for the source
  }
}

// Not every runtime can iterate over a stream.
async function* asIterable<T>(s: ReadableStream<T> | AsyncIterable<T>): AsyncGenerator<T, void, void> {
  if (Symbol.asyncIterator in s) return yield* s;
  const reader = (s as ReadableStream<T>).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}
