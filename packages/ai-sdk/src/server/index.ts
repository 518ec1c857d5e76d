// @tapedeck/ai-sdk/server: for the routes of a program whose agent is its own.
import { type ClientOptions, createClient } from "@tapedeck/client";
import type { UIMessage } from "ai";
import { messagesOf, pathOf, versionHeader } from "../transport.ts";
import { type Authorize, type Routes, routesOf } from "./routes.ts";
import { type ChatRequest, Run, type RunContext } from "./run.ts";

export { TapedeckError } from "@tapedeck/client";
export { type Authorize, type Routes, refusal } from "./routes.ts";
export type { ChatRequest, RespondOptions, Run, RunSource, StreamResult } from "./run.ts";

export interface TapedeckOptions extends ClientOptions {
  /** The name of the agent in the log; `web` without it. */
  agent?: string;
  /** The version of `ai` for which `messages` answers, and a run whose request names none; 6 without it. */
  version?: 5 | 6 | 7;
  /** Keeps a program alive that is stopped when it has answered, as `waitUntil` of such a host does. */
  waitUntil?: (promise: Promise<unknown>) => void;
  /** How long a run waits for a server that is away, in milliseconds; two minutes without it. */
  giveUpMs?: number;
  /**
   * How long this program may be silent before the server takes it for dead and ends the run, in
   * milliseconds, at least 1000; 15 seconds without it. A run renews its lease by itself.
   */
  leaseMs?: number;
}

export interface Tapedeck {
  /**
   * Stores the new messages of a chat and begins a run of the agent in it: both, or nothing. It
   * waits for a server that is away, see `giveUpMs`, and fails if the chat is busy.
   */
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
  const { agent = "web", version = 6, waitUntil, giveUpMs = 120_000, leaseMs } = o;
  const client = createClient(o);
  const context: RunContext = { client, agent, version, waitUntil, giveUpMs, leaseMs };
  // Any agent of the server can read a chat.
  const base = "/aisdk/default";
  const headers = { Accept: "application/json", [versionHeader]: String(version) };
  return {
    run: (id, request) => Run.begin(context, id, request),
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
