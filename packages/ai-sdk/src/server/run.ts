import { type Client, TapedeckError } from "@tapedeck/client";
import { defaultLeaseMs, Recording } from "@tapedeck/client/record";
import type { UIMessage, UIMessageChunk } from "ai";
import type { Chunk } from "../chunks.ts";
import { pathOf, versionHeader } from "../transport.ts";
import { Recorder, Wrong } from "./recorder.ts";

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
  leaseMs: number | undefined;
}

/** The members of a request of `useChat` that matter here. */
export interface ChatRequest<M extends UIMessage = UIMessage> {
  messages: M[];
  /** Of the request; without it another answer to the same message is not asked for. */
  trigger?: "submit-message" | "regenerate-message";
  /** Of the request: the transport of the page names its version of `ai` there. */
  headers?: Headers;
}

/** The options of `toUIMessageStream` of `streamText`, of any version. */
export interface RespondOptions {
  /** The text of an error, for the log and the pages. */
  onError?: (error: unknown) => string;
  [option: string]: unknown;
}

/** Where in the chat a run has begun. */
interface Begun {
  message: string;
  /** The offset at which the run begins, and so its part of the message. */
  from: number;
}

/** A run of an agent of this program. It is open from its making until its stream has ended. */
export class Run {
  /** The id of the run. It is that of the message of the agent, unless the run continues one. */
  readonly id: string;
  /** Aborts when somebody stops the run, on any screen. Give it to `streamText`. */
  readonly signal: AbortSignal;
  private readonly c: RunContext;
  private readonly request: ChatRequest;
  private readonly recorder: Recorder;
  private readonly recording: Recording;
  private readonly place: Begun;

  private constructor(c: RunContext, request: ChatRequest, recorder: Recorder, recording: Recording, place: Begun) {
    [this.c, this.request, this.recorder, this.recording, this.place] = [c, request, recorder, recording, place];
    this.id = recording.invocation;
    this.signal = recording.signal;
  }

  /** Stores the new messages of a chat and begins a run in the log: both or nothing. It fails if the chat is busy. */
  static async begin(c: RunContext, chat: string, request: ChatRequest): Promise<Run> {
    const id = `inv_${crypto.randomUUID()}`;
    const actor = `agent:${c.agent}`;
    const { messages, trigger } = request;
    const path = `/aisdk/${encodeURIComponent(c.agent)}${pathOf(chat)}/messages`;
    const headers = { Accept: "application/json", "Content-Type": "application/json" };
    const { giveUpMs, leaseMs = defaultLeaseMs } = c;
    const body = JSON.stringify({ id: chat, messages, trigger, run: id, leaseMs });
    const answer = await patiently(giveUpMs, () => c.client.request(path, { method: "POST", headers, body }));
    const place = (await answer.json()) as Begun;
    const recording = Recording.of(c.client.session(chat), id, place.from, { giveUpMs, leaseMs });
    return new Run(c, request, new Recorder(id, actor), recording, place);
  }

  /**
   * Records what the agent says while it says it, and answers with the stream of the log: the
   * page that asked gets the same as every other one, and nothing that is not durable. If the page
   * disconnects, the agent continues. `options` are those of `toUIMessageStream`. Its `onError`
   * makes the text of an error that everybody may read, also of a source that fails by itself;
   * without it that is "An error occurred.", and the error goes to the console.
   */
  async respond(source: RunSource, options: RespondOptions = {}): Promise<Response> {
    const { message, from } = this.place;
    const more = { originalMessages: this.request.messages, generateMessageId: () => message };
    const recorded = this.record(chunksOf(source, { ...more, ...options }), options.onError ?? masked);
    this.c.waitUntil?.(recorded);
    const query = new URLSearchParams({ message, ...(message === this.id ? {} : { from: String(from) }) });
    const path = `/aisdk/default${pathOf(this.recording.session.id)}/stream?${query}`;
    const version = this.request.headers?.get(versionHeader) ?? String(this.c.version);
    const headers = { Accept: "text/event-stream", [versionHeader]: version };
    const { body } = await this.c.client.request(path, { headers });
    return new Response(body, { headers: streamHeaders });
  }

  /** Ends the run with an error, for an agent that has no stream. */
  async fail(message: string): Promise<void> {
    await this.recording.end(this.recorder.fail(message), "failed");
  }

  private async record(chunks: AsyncIterable<Chunk>, textOf: (error: unknown) => string): Promise<void> {
    const { recorder, recording } = this;
    try {
      for await (const chunk of until(this.signal, chunks)) {
        const events = recorder.add(chunk);
        if (!recorder.ended) await recording.put(events);
        else if (recording.status === "running") await recording.end(events, "complete");
      }
      if (!this.signal.aborted && !recorder.ended)
        await this.broken("the stream of the agent ended before its message did");
    } catch (error) {
      if (recording.status === "interrupted") await recording.abandon(recorder.fail(refused(error))); // an event was refused
      if (this.signal.aborted) return;
      const why = error instanceof Wrong ? error.message : textOf(error);
      recording.abort(error);
      await this.broken(why).catch(() => undefined);
    }
  }

  private async broken(message: string): Promise<void> {
    await this.recording.end(this.recorder.fail(message, "lease_expired"), "interrupted"); // as the server ends a stream that breaks off
  }
}

/** As in `streamText`: an error may have secrets, such as the key of a model. */
function masked(error: unknown): string {
  console.error(error);
  return "An error occurred.";
}

/** Why the server has refused an event. */
function refused(error: unknown): string {
  return error instanceof TapedeckError ? error.message : "an event could not be recorded";
}

const [firstWaitMs, longestWaitMs] = [250, 5_000];

/** What `ask` answers. While the server is away it asks again, until `giveUpMs` have passed: the same request twice is harmless. */
async function patiently<T>(giveUpMs: number, ask: () => Promise<T>): Promise<T> {
  const since = Date.now();
  for (let waitMs = firstWaitMs; ; waitMs = Math.min(2 * waitMs, longestWaitMs)) {
    try {
      return await ask();
    } catch (error) {
      const passes = error instanceof TapedeckError && error.retryable;
      if (!passes || Date.now() + waitMs - since > giveUpMs) throw error;
      await new Promise((later) => setTimeout(later, Math.min(error.retryAfterMs ?? waitMs, longestWaitMs)));
    }
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
      throw new Wrong("the stream of the agent has something that is no chunk; give what streamText returns");
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
