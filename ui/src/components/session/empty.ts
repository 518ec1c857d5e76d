import type { SessionInfo } from "@tapedeck/client";

/** The text of an empty conversation. */
export function emptyText(live: boolean, session: Pick<SessionInfo, "closed">): string {
  if (!live) return "At this moment the conversation was empty.";
  return session.closed ? "The session was closed before the agent got a task." : "Give the agent a task below.";
}
