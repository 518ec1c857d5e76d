import type { Conversation } from "./conversation.ts";
import { delta, read, readMeta } from "./read.ts";
import { begun, MessageRec } from "./record.ts";
import { kindOf, named, nameOf, type ThreadFold, told } from "./thread.ts";
import type { Event, Json, Status } from "./types.ts";

export function textStart(_: Conversation, t: ThreadFold, e: Event): boolean {
  const r = read(e);
  const [id, role, name, subagent] = [r.str("messageId"), r.str("role"), r.str("name"), r.str("subagentRunId")];
  if (!r.ok || id === "") return false;
  const as = roleOf(e) === "assistant" && role !== "" ? role : roleOf(e);
  const known = t.message.get(nameOf(as, id));
  if (known && kindOf(as) !== told && known.invocation === (e.invocation ?? "")) {
    known.reopen("running");
    t.work(known.invocation).messages.add(known);
    return true;
  }
  const m = stream(t, e, id, as);
  m.name = name;
  m.metadata = r.raw("metadata");
  if (subagent) m.item = { ...m.item, subagent };
  return true;
}

/** The role of a streamed message, if its events have none. */
const roleOf = (e: Event) => (e.type.startsWith("REASONING_") ? "reasoning" : "assistant");

/** Adds a message whose text follows in later events. */
function stream(t: ThreadFold, e: Event, id: string, role: string): MessageRec {
  const m = new MessageRec(begun(t.name, e, "running"), id);
  t.work(m.invocation).messages.add(m);
  add(t, m, role, e.offset);
  return m;
}

/**
 * The message to which an event with its id adds text, or which it ends. What the agent
 * was told is complete, unless the agent itself streams a message in such a role.
 */
function streamed(t: ThreadFold, e: Event, id: string): MessageRec | undefined {
  const role = roleOf(e);
  const m = role === "assistant" ? t.message.get(named(told, id)) : undefined;
  return m && t.isBusy(m) ? m : t.message.get(nameOf(role, id));
}

export function add(t: ThreadFold, m: MessageRec, role: string, at: number): void {
  t.add(m, role);
  t.settleMessages(at);
}

export function textContent(_: Conversation, t: ThreadFold, e: Event): boolean {
  const d = delta(e, "messageId");
  if (!d) return false;
  const m = streamed(t, e, d.id) ?? stream(t, e, d.id, roleOf(e)); // without its start event, the text is still kept
  m.text += d.text;
  m.touch();
  return true;
}

export function textEnd(_: Conversation, t: ThreadFold, e: Event): boolean {
  const r = read(e);
  const m = streamed(t, e, r.str("messageId"));
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
