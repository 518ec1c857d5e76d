import type { SessionInfo } from "@/fold/types";

/** What stands in a conversation in which nothing has been said. */
export function emptyText(live: boolean, session: Pick<SessionInfo, "closed">): string {
  if (!live) return "At this moment the conversation was empty.";
  return session.closed ? "It was closed before anybody gave the agent a task." : "Give the agent a task below.";
}
