import { createClient } from "@tapedeck/client";
import type { DeckOptions } from "@tapedeck/client/player";
import { api, url } from "./client";

/** The client of the server, for pages that follow sessions or send files. */
export const client = createClient({ url });

/** A deck that reads from the server. */
export const liveDeck: DeckOptions = { api, follow: (id, listener) => client.follower(id, listener) };
