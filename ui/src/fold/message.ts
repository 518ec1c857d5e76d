import type { Conversation } from "./conversation";
import type { Lane } from "./lane";
import { delta, Reader, read } from "./read";
import { begun, MessageRec } from "./record";
import type { Event, Json, Status } from "./types";

export function textStart(_: Conversation, l: Lane, e: Event): boolean {
  const r = read(e);
  const [id, role, name, subagent] = [r.str("messageId"), r.str("role"), r.str("name"), r.str("subagentRunId")];
  if (!r.ok || id === "") return false;
  const known = l.message.get(id);
  if (known && known.invocation === (e.invocation ?? "")) {
    known.reopen("running");
    l.work(known.invocation).messages.add(known);
    return true;
  }
  const m = stream(l, e, id);
  m.name = name;
  m.metadata = r.raw("metadata");
  if (subagent) m.item = { ...m.item, subagent };
  if (role !== "") l.setRole(m, role);
  return true;
}

/** Adds a message whose text is to come. */
function stream(l: Lane, e: Event, id: string): MessageRec {
  const m = new MessageRec(begun(l.name, e, "running"), id);
  l.work(m.invocation).messages.add(m);
  add(l, m, e.type.startsWith("REASONING_") ? "reasoning" : "assistant", e.offset);
  return m;
}

export function add(l: Lane, m: MessageRec, role: string, at: number): void {
  l.add(m, role);
  l.settleMessages(at);
}

export function textContent(_: Conversation, l: Lane, e: Event): boolean {
  const d = delta(e, "messageId");
  if (!d) return false;
  const m = l.message.get(d.id) ?? stream(l, e, d.id); // its start was not given to us; no text is lost
  m.text += d.text;
  m.touch();
  return true;
}

export function textEnd(_: Conversation, l: Lane, e: Event): boolean {
  const r = read(e);
  const m = l.message.get(r.str("messageId"));
  if (!r.ok) return false;
  if (m) {
    m.end(e, closedStatus(r.raw("metadata")));
    l.open.get(m.invocation)?.messages.delete(m);
  }
  return true;
}

/**
 * The status of a message that an event with this metadata ends. When the server
 * ends a run in the middle of a message, it ends the message, too, and notes the
 * status of the run in the mark "closed". A failed run interrupts its message.
 * Without a readable mark the message is complete.
 */
function closedStatus(metadata: Json | undefined): Status {
  const closed = new Reader(metadata).sub("tapedeck").str("closed");
  if (closed === "cancelled") return "cancelled";
  return closed === "interrupted" || closed === "failed" ? "interrupted" : "complete";
}
