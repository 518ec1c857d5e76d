import type { Conversation } from "./conversation.ts";
import { delta, read, readMeta } from "./read.ts";
import { begun, MessageRec } from "./record.ts";
import type { ThreadFold } from "./thread.ts";
import type { Event, Json, Status } from "./types.ts";

export function textStart(_: Conversation, t: ThreadFold, e: Event): boolean {
  const r = read(e);
  const [id, role, name, subagent] = [r.str("messageId"), r.str("role"), r.str("name"), r.str("subagentRunId")];
  if (!r.ok || id === "") return false;
  const known = t.message.get(id);
  if (known && known.invocation === (e.invocation ?? "")) {
    known.reopen("running");
    t.work(known.invocation).messages.add(known);
    return true;
  }
  const m = stream(t, e, id);
  m.name = name;
  m.metadata = r.raw("metadata");
  if (subagent) m.item = { ...m.item, subagent };
  if (role !== "") t.setRole(m, role);
  return true;
}

/** Adds a message whose text follows in later events. */
function stream(t: ThreadFold, e: Event, id: string): MessageRec {
  const m = new MessageRec(begun(t.name, e, "running"), id);
  t.work(m.invocation).messages.add(m);
  add(t, m, e.type.startsWith("REASONING_") ? "reasoning" : "assistant", e.offset);
  return m;
}

export function add(t: ThreadFold, m: MessageRec, role: string, at: number): void {
  t.add(m, role);
  t.settleMessages(at);
}

export function textContent(_: Conversation, t: ThreadFold, e: Event): boolean {
  const d = delta(e, "messageId");
  if (!d) return false;
  const m = t.message.get(d.id) ?? stream(t, e, d.id); // without its start event, the text is still kept
  m.text += d.text;
  m.touch();
  return true;
}

export function textEnd(_: Conversation, t: ThreadFold, e: Event): boolean {
  const r = read(e);
  const m = t.message.get(r.str("messageId"));
  if (!r.ok) return false;
  if (m) {
    m.end(e, closedStatus(r.raw("metadata")));
    t.open.get(m.invocation)?.messages.delete(m);
  }
  return true;
}

/**
 * The status of a message that an event with this metadata ends. When the server
 * ends a run in the middle of a message, it ends the message, too, and notes the
 * status of the run in the member "closed". A failed run interrupts its message.
 * Without a readable member the message is complete.
 */
function closedStatus(metadata: Json | undefined): Status {
  const closed = readMeta(metadata).str("closed");
  if (closed === "cancelled") return "cancelled";
  return closed === "interrupted" || closed === "failed" ? "interrupted" : "complete";
}
