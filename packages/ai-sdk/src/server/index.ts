// @tapedeck/ai-sdk/server: for the routes of a program whose agent is its own.
import { type ClientOptions, createClient } from "@tapedeck/client";
import type { UIMessage } from "ai";
import { messagesOf, pathOf } from "../transport.ts";
import { type Authorize, type Routes, routesOf } from "./routes.ts";
import { Run, type RunContext } from "./run.ts";

export { TapedeckError } from "@tapedeck/client";
export { type Authorize, type Routes, refusal } from "./routes.ts";
export type { Run, RunSource, StreamResult } from "./run.ts";

export interface TapedeckOptions extends ClientOptions {
  /** The name of the agent in the log; `web` without it. */
  agent?: string;
  /** The major version of `ai` in the pages. 5 gets no approvals, and only 7 gets messages that steer as such. */
  version?: 5 | 6 | 7;
  /** Keeps a program alive that is stopped when it has answered, as `waitUntil` of such a host does. */
  waitUntil?: (promise: Promise<unknown>) => void;
  /** How long a run waits for a server that is away, in milliseconds; two minutes without it. */
  giveUpMs?: number;
  /** After this time without a chunk a run says that it is alive, in milliseconds; a minute without it. */
  aliveMs?: number;
}

/** The members of a request of `useChat` that matter here. */
export interface ChatRequest<M extends UIMessage = UIMessage> {
  messages: M[];
  /** Of the request; without it another answer to the same message is not asked for. */
  trigger?: "submit-message" | "regenerate-message";
}

export interface Tapedeck {
  /** Stores the new messages of a chat and begins a run of the agent in it. It fails if the chat is busy. */
  run(id: string, request: ChatRequest): Promise<Run>;
  /** The messages of a chat, without that of the open run. A chat that has not begun has none. */
  messages<M extends UIMessage = UIMessage>(id: string): Promise<M[]>;
  /** Stops the open run of a chat, on all screens. It answers whether one was open. */
  stop(id: string): Promise<boolean>;
  /** Routes for the other requests of a chat, for pages that reach the server only through this program. */
  routes(o: { authorize: Authorize }): Routes;
}

/** A Tapedeck server, for the routes of this program. */
export function createTapedeck(o: TapedeckOptions): Tapedeck {
  const { agent = "web", version = 6, waitUntil, giveUpMs = 120_000, aliveMs = 60_000 } = o;
  const client = createClient(o);
  const context: RunContext = { client, agent, version, waitUntil, giveUpMs, aliveMs };
  // Any agent of the server can read a chat.
  const base = "/aisdk/default";
  const headers = { Accept: "application/json", "Tapedeck-AI-SDK-Version": String(version) };
  return {
    async run(id, { messages, trigger }) {
      await client.request(`/aisdk/${encodeURIComponent(agent)}${pathOf(id)}/messages`, {
        method: "POST",
        headers: { ...headers, "Content-Type": "application/json" },
        body: JSON.stringify({ id, messages, trigger }),
      });
      return Run.begin(context, client.session(id), messages);
    },
    async messages<M extends UIMessage>(id: string) {
      return messagesOf<M>(await client.request(`${base}${pathOf(id)}/messages`, { headers }));
    },
    async stop(id) {
      const answer = await client.request(`${base}${pathOf(id)}/stop`, { method: "POST", headers });
      return ((await answer.json()) as { stopped?: boolean }).stopped === true;
    },
    routes: ({ authorize }) => routesOf(client, authorize),
  };
}
