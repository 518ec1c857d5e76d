import type { Conversation } from "./conversation";
import type { Lane } from "./lane";
import { content, delta, Reader, read } from "./read";
import { begun, CallRec } from "./record";
import { planEntries, setPlan } from "./state";
import type { Event, Json, Status, ToolResult } from "./types";

export function toolStart(_: Conversation, l: Lane, e: Event): boolean {
  const r = read(e);
  const [id, name] = [r.str("toolCallId"), r.str("toolCallName")];
  const [messageId, subagent] = [r.str("parentMessageId"), r.str("subagentRunId")];
  if (!r.ok || id === "") return false;
  const known = l.call.get(id);
  if (known && known.invocation === (e.invocation ?? "")) {
    known.complete = false;
    known.result = undefined;
    known.reopen("pending");
    l.work(known.invocation).calls.add(known);
    return true;
  }
  const k = newCall(l, e, id);
  k.messageId = messageId;
  k.name = name;
  if (subagent) k.item = { ...k.item, subagent };
  k.madeBy(l.message.get(messageId));
  return true;
}

function newCall(l: Lane, e: Event, id: string): CallRec {
  const k = new CallRec(begun(l.name, e, "pending"), id);
  l.work(k.invocation).calls.add(k);
  l.calls.push(k);
  l.call.set(id, k);
  l.settleCalls(e.offset);
  return k;
}

export function knownCall(l: Lane, e: Event, id: string): CallRec {
  return l.call.get(id) ?? newCall(l, e, id);
}

export function toolArgs(_: Conversation, l: Lane, e: Event): boolean {
  const d = delta(e, "toolCallId");
  if (!d) return false;
  const k = knownCall(l, e, d.id);
  k.args += d.text;
  k.touch();
  return true;
}

export function toolEnd(_: Conversation, l: Lane, e: Event): boolean {
  const r = read(e);
  const k = l.call.get(r.str("toolCallId"));
  if (!r.ok) return false;
  if (!k) return true;
  k.complete = true;
  k.touch();
  if (l.isOpen(k)) k.status("running");
  planByTool(l, k, e);
  return true;
}

/** Takes the plan from the tool with which some agents keep it. What else its arguments may be is not a plan. */
export function planByTool(l: Lane, k: CallRec, e: Event): void {
  if (k.name !== "TodoWrite") return;
  const r = new Reader(k.input());
  const entries = planEntries(r.list("todos"));
  if (r.ok && entries) setPlan(l, e, entries);
}

interface Answer {
  messageId: string;
  content: Json | undefined;
  error: Json | undefined;
  failed: boolean; // as its metadata says
  took?: Json; // likewise, in milliseconds
}

export function toolResult(_: Conversation, l: Lane, e: Event): boolean {
  const r = read(e);
  const [id, messageId] = [r.str("toolCallId"), r.str("messageId")];
  const metadata = r.sub("metadata");
  const ours = metadata.sub("tapedeck");
  const failed = ours.bool("error") ?? false;
  if (!r.ok || !metadata.ok || !ours.ok || id === "") return false;
  answer(l, e, id, {
    messageId,
    content: r.raw("content"),
    error: r.raw("error"),
    failed,
    took: ours.raw("durationMs"),
  });
  return true;
}

export function answer(l: Lane, e: Event, id: string, a: Answer): void {
  const k = knownCall(l, e, id);
  const result: ToolResult = { offset: e.offset, ...content(a.content) };
  if (a.messageId) result.message_id = a.messageId;
  const why = failure(a);
  if (why) result.error = why;
  const status: Status = why === undefined ? "complete" : "failed";
  if (k.result) {
    result.offset = k.result.offset; // restated; it was answered when it was
    k.status(status);
  } else {
    k.end(e, status);
    if (typeof a.took === "number" && Number.isSafeInteger(a.took) && a.took >= 0) k.took(a.took);
  }
  k.result = result;
  k.touch();
  l.open.get(k.invocation)?.calls.delete(k);
}

/** Why a tool failed; undefined if it did not. */
function failure(a: Answer): string | undefined {
  if (a.error === undefined || a.error === null || a.error === false) return a.failed ? "" : undefined;
  return typeof a.error === "string" ? a.error : JSON.stringify(a.error);
}
