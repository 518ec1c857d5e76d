import type { Refusal } from "./no-field";

/** The text of an empty conversation. Without a refusal and with `field`, the page has a field for a task. */
export function emptyText(live: boolean, refusal: Refusal | undefined, field: boolean): string {
  if (!live) return "At this moment the conversation was empty.";
  if (refusal === "closed" || refusal === "deleted") return `The session was ${refusal} before the agent got a task.`;
  return field && !refusal ? "Give the agent a task below." : "Messages appear here as soon as they are in the log.";
}
