import { createClient } from "@tapedeck/client";
import type { DeckOptions } from "@tapedeck/client/player";

/** The client of the server that served this page. The screen talks to it with this client only. */
export const client = createClient({ url: origin() });

// The page of a recording is a file: it has no server and sends no requests, but it shares
// components that import this client.
function origin(): string {
  const { protocol, origin } = globalThis.location ?? {};
  return protocol === "http:" || protocol === "https:" ? origin : "http://127.0.0.1:4747";
}

export const { api } = client;

/** A deck that reads from the server. */
export const liveDeck: DeckOptions = { api, follow: (id, listener) => client.follower(id, listener) };
