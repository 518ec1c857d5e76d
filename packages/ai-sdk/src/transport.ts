import {
  type Client,
  type ClientOptions,
  createClient,
  type Environment,
  type Session,
  TapedeckError,
} from "@tapedeck/client";
import type { ChatTransport, UIMessage, UIMessageChunk } from "ai";
import { type Active, activeOf } from "./active.ts";
import { type Chunk, lost } from "./chunks.ts";
import type { Seen } from "./seen.ts";
import { checked, foreign, messageStream, type Reconnecting, streamOf } from "./stream.ts";

export type { Reconnecting } from "./stream.ts";

export interface TapedeckTransportOptions {
  /**
   * Where the chat is: `https://host/aisdk/AGENT` of a Tapedeck server, or a route of your own
   * that uses `@tapedeck/ai-sdk/server`. In a page it may be relative.
   */
  api: string;
  /** Headers of every request, such as Authorization. A function is called for every attempt, so a token can be renewed. */
  headers?: ClientOptions["headers"];
  /** More members of the body of each request that sends messages. */
  body?: object | (() => object);
  /** The fetch to use; without it, the global one. */
  fetch?: typeof fetch;
  /** The major version of `ai` in this page. 5 gets no approvals, and only 7 gets messages that steer as such. */
  version?: 5 | 6 | 7;
  /** A connection that is silent for this long is replaced, in milliseconds; the server sends something every 15 s. 0 for never. */
  stallMs?: number;
  /** Called before each wait to reconnect, and with undefined when the connection is back. */
  onReconnect?: (r: Reconnecting | undefined) => void;
  environment?: Environment;
}

type Send<M extends UIMessage> = Parameters<ChatTransport<M>["sendMessages"]>[0];
type Reconnect<M extends UIMessage> = Parameters<ChatTransport<M>["reconnectToStream"]>[0] & {
  abortSignal?: AbortSignal | undefined;
};

/**
 * The transport of a durable chat, for `useChat` of the AI SDK 5, 6 and 7. Its streams survive
 * lost connections and restarts of the server: the chat gets each chunk once. It has no state, so
 * a page may make a new one each time it is drawn.
 */
export class TapedeckTransport<M extends UIMessage = UIMessage> implements ChatTransport<M> {
  readonly resumeStreamIsReplay = true;
  readonly api: string;
  private readonly o: TapedeckTransportOptions;
  private made: Client | undefined;

  constructor(o: TapedeckTransportOptions) {
    this.api = o.api.replace(/\/+$/, "");
    this.o = o;
  }

  // Not in the constructor: a page that is drawn on a server cannot resolve a relative address there.
  private get client(): Client {
    this.made ??= this.clientOf(this.api);
    return this.made;
  }

  private clientOf(url: string): Client {
    const { headers, fetch } = this.o;
    return createClient({ url, ...(headers ? { headers } : {}), ...(fetch ? { fetch } : {}) });
  }

  async sendMessages(o: Send<M>): Promise<ReadableStream<UIMessageChunk>> {
    const { body } = this.o;
    const sent = {
      ...(typeof body === "function" ? body() : body),
      ...o.body,
      id: o.chatId,
      messages: o.messages,
      trigger: o.trigger,
      messageId: o.messageId,
    };
    const headers = { ...this.headers(o.headers), "Content-Type": "application/json" };
    try {
      const opened = await this.open(o.chatId, o.abortSignal, async (signal) =>
        checked(await this.client.request("", { method: "POST", headers, body: JSON.stringify(sent), signal })),
      );
      return opened!;
    } catch (error) {
      this.keepUnsent(o, error);
      throw error;
    }
  }

  /** Keeps what could not be sent, so that its text does not get lost. */
  private keepUnsent({ chatId, messages, abortSignal }: Send<M>, error: unknown): void {
    const message = messages.at(-1);
    const stopped = abortSignal?.aborted ? new TapedeckError("unreachable", "the user has stopped the request") : error;
    if (message?.role === "user" && stopped instanceof TapedeckError)
      this.active(chatId).unsent.set(message.id, { message, error: stopped });
  }

  async reconnectToStream(o: Reconnect<M>): Promise<ReadableStream<UIMessageChunk> | null> {
    return this.open(o.chatId, o.abortSignal, async (signal) => {
      const headers = this.headers(o.headers);
      const response = await this.client.request(`${pathOf(o.chatId)}/stream`, { headers, signal });
      return response.status === 204 ? null : checked(response);
    });
  }

  /** The messages of a chat, without that of the open run, which the stream has. A chat that has not begun has none. */
  async messages(id: string, o: { signal?: AbortSignal } = {}): Promise<M[]> {
    const response = await this.client.request(`${pathOf(id)}/messages`, { headers: this.headers(), ...o });
    return messagesOf<M>(response, o.signal);
  }

  /** Whether a chat has begun. It asks without an error, which a browser would show to its developer. */
  async begun(id: string, o: { signal?: AbortSignal } = {}): Promise<boolean> {
    const response = await this.client.request(`${pathOf(id)}/messages`, { headers: this.headers(), ...o });
    await response.body?.cancel().catch(() => undefined);
    return response.headers.get("Tapedeck-Begun") !== "false";
  }

  /** Stops the open run of a chat, on all screens. `stop` of `useChat` only disconnects. It answers whether one was open. */
  async stop(id: string, o: { signal?: AbortSignal } = {}): Promise<boolean> {
    const asked = { method: "POST", headers: this.headers(), ...o };
    const response = await this.client.request(`${pathOf(id)}/stop`, asked);
    const answer = await jsonOf(response, o.signal);
    return typeof answer === "object" && answer !== null && "stopped" in answer && answer.stopped === true;
  }

  /** The session of a chat, to follow it. A route of one's own has its events below its own address. */
  session(id: string): Session {
    const server = this.api.match(/^(.*)\/aisdk\/[^/]+$/)?.[1];
    return (server === undefined ? this.client : this.clientOf(server === "" ? "/" : server)).session(id);
  }

  /** The open streams of a chat. */
  active(id: string): Active {
    return activeOf(this.api, id);
  }

  private headers(more?: Record<string, string> | Headers): Record<string, string> {
    const all = Object.fromEntries(new Headers(more));
    const { version = 6 } = this.o;
    return {
      ...all,
      Accept: "text/event-stream, application/json",
      [versionHeader]: String(version),
    };
  }

  private async open(
    id: string,
    given: AbortSignal | undefined,
    first: (signal: AbortSignal) => Promise<Response | null>,
  ): Promise<ReadableStream<UIMessageChunk> | null> {
    const active = this.active(id);
    const leave = active.enter();
    const cut = new AbortController();
    const stop = () => cut.abort(given?.reason);
    given?.addEventListener("abort", stop);
    if (given?.aborted) stop();
    const end = () => {
      given?.removeEventListener("abort", stop);
      cut.abort();
      leave();
    };
    try {
      const response = await first(cut.signal);
      if (response)
        return streamOf(this.chunks(response, id, active, cut.signal, end), end) as ReadableStream<UIMessageChunk>;
    } catch (error) {
      const reason = cut.signal.aborted ? cut.signal.reason : error;
      end();
      throw reason;
    }
    end();
    return null;
  }

  private async *chunks(
    first: Response,
    id: string,
    active: Active,
    signal: AbortSignal,
    end: () => void,
  ): AsyncGenerator<Chunk, void, void> {
    try {
      const { stallMs = 40_000, onReconnect, environment } = this.o;
      const reopen = ({ message, from, attempts }: Seen, signal: AbortSignal) => {
        const query = new URLSearchParams();
        if (message !== undefined) query.set("message", message);
        if (message !== undefined && from !== undefined) query.set("from", String(from));
        // The chunks that the page has are skipped, so they must come again, also those of earlier attempts.
        if (message !== undefined) query.set("attempts", String(attempts));
        return this.client.request(`${pathOf(id)}/stream?${query}`, { headers: this.headers(), signal });
      };
      const seen = yield* messageStream(first, { api: this.api, signal, reopen, stallMs, onReconnect, environment });
      if (seen.run !== undefined) active.ended.add(seen.run);
    } finally {
      end();
    }
  }
}

/** The header with which a page names its version of `ai`. */
export const versionHeader = "Tapedeck-AI-SDK-Version";

/** The path of a chat below the address of the transport. */
export function pathOf(chat: string): string {
  return `/${encodeURIComponent(chat)}`;
}

/** The messages in an answer. */
export async function messagesOf<M extends UIMessage>(response: Response, signal?: AbortSignal): Promise<M[]> {
  const list = await jsonOf(response, signal);
  if (Array.isArray(list)) return list as M[];
  throw foreign(response, "a list of messages");
}

/** The JSON of an answer. A proxy may have answered something else. */
async function jsonOf(response: Response, signal?: AbortSignal): Promise<unknown> {
  try {
    return await response.json();
  } catch (cause) {
    if (signal?.aborted) throw cause;
    if (cause instanceof SyntaxError) throw foreign(response, "JSON");
    throw lost("the connection was lost before the end of the answer", cause);
  }
}
