import { createEndPoints } from "@tapedeck/client";

// The page of a recording is a file: it has no server and sends no requests, but it shares
// components that import this client.
function origin(): string {
  const { protocol, origin } = globalThis.location ?? {};
  return protocol === "http:" || protocol === "https:" ? origin : "http://127.0.0.1:4747";
}

/** The address of the server that served this page. */
export const url = origin();

/** The end points of that server. What follows a session is in live.ts, which the first page does not load. */
export const api = createEndPoints({ url });
