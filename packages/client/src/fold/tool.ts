import type { Conversation } from "./conversation.ts";
import { content, delta, Reader, read, readMeta } from "./read.ts";
import { begun, CallRec } from "./record.ts";
import { planEntries, setPlan } from "./state.ts";
import type { ThreadFold } from "./thread.ts";
import type { Event, Json, Status, ToolResult } from "./types.ts";

export function toolStart(_: Conversation, t: ThreadFold, e: Event): boolean {
  const r = read(e);
  const [id, name] = [r.str("toolCallId"), r.str("toolCallName")];
  const [messageId, subagent] = [r.str("parentMessageId"), r.str("subagentRunId")];
  if (!r.ok || id === "") return false;
  const known = t.call.get(id);
  if (known && known.invocation === (e.invocation ?? "") && known.name === "") {
    t.dropCall(known); // it was answered before it was made
    t.sweep();
  }
  const k = newCall(t, e, id);
  k.messageId = messageId;
  k.name = name;
  if (subagent) k.item = { ...k.item, subagent };
  k.madeBy(t.maker(messageId));
  return true;
}

function newCall(t: ThreadFold, e: Event, id: string): CallRec {
  const k = new CallRec(begun(t.name, e, "pending"), id);
  t.work(k.invocation).calls.add(k);
  t.calls.push(k);
  t.call.set(id, k);
  t.settleCalls(e.offset);
  return k;
}

export function knownCall(t: ThreadFold, e: Event, id: string): CallRec {
  return t.call.get(id) ?? newCall(t, e, id);
}

export function toolArgs(_: Conversation, t: ThreadFold, e: Event): boolean {
  const d = delta(e, "toolCallId");
  if (!d) return false;
  const k = knownCall(t, e, d.id);
  k.args += d.text;
  k.touch();
  return true;
}

export function toolEnd(_: Conversation, t: ThreadFold, e: Event): boolean {
  const r = read(e);
  const k = t.call.get(r.str("toolCallId"));
  if (!r.ok) return false;
  if (!k) return true;
  k.complete = true;
  k.touch();
  if (t.isOpen(k)) k.status("running");
  planByTool(t, k, e);
  return true;
}

/** Sets the plan from a TodoWrite call, with which some agents keep it. Arguments of another shape are ignored. */
export function planByTool(t: ThreadFold, k: CallRec, e: Event): void {
  if (k.name !== "TodoWrite") return;
  const r = new Reader(k.input());
  const entries = planEntries(r.list("todos"));
  if (r.ok && entries) setPlan(t, e, entries);
}

interface Answer {
  messageId: string;
  content: Json | undefined;
  error: Json | undefined;
  metadata: Json | undefined;
}

export function toolResult(_: Conversation, t: ThreadFold, e: Event): boolean {
  const r = read(e);
  const [id, messageId] = [r.str("toolCallId"), r.str("messageId")];
  if (!r.ok || id === "") return false;
  answer(t, e, id, {
    messageId,
    content: r.raw("content"),
    error: r.raw("error"),
    metadata: r.raw("metadata"),
  });
  return true;
}

export function answer(t: ThreadFold, e: Event, id: string, a: Answer): void {
  const k = knownCall(t, e, id);
  const result: ToolResult = { offset: e.offset, ...content(a.content) };
  if (a.messageId) result.message_id = a.messageId;
  const why = failure(a);
  if (why) result.error = why;
  if (readMeta(a.metadata).bool("denied")) result.denied = true;
  const status: Status = why === undefined ? "complete" : "failed";
  if (k.result) {
    result.offset = k.result.offset; // a restated result keeps its first offset
    k.status(status);
  } else {
    k.end(e, status);
    const took = readMeta(a.metadata).raw("durationMs"); // in milliseconds
    if (typeof took === "number" && Number.isSafeInteger(took) && took >= 0) k.took(took);
  }
  k.result = result;
  k.touch();
  t.open.get(k.invocation)?.calls.delete(k);
}

/** The error of a failed tool call; undefined if it did not fail. */
function failure(a: Answer): string | undefined {
  if (a.error === undefined || a.error === null || a.error === false)
    return readMeta(a.metadata).bool("error") ? "" : undefined;
  return typeof a.error === "string" ? a.error : JSON.stringify(a.error);
}
