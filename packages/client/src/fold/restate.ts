import type { Conversation } from "./conversation.ts";
import { add } from "./message.ts";
import { content, Reader, read, readMeta } from "./read.ts";
import { begun, MessageRec } from "./record.ts";
import { groupOf, groups, nameOf, type ThreadFold } from "./thread.ts";
import { answer, knownCall, planByTool } from "./tool.ts";
import type { Event, Json } from "./types.ts";

interface FullMessage {
  id: string;
  role: string;
  content: Json | undefined;
  name: string;
  toolCallId: string;
  error: Json | undefined;
  activity: string;
  subagent: string;
  metadata: Json | undefined;
  calls: { id: string; name: string; args: string }[];
}

function readMessage(raw: Json | undefined): FullMessage | undefined {
  const r = new Reader(raw);
  const m: FullMessage = {
    id: r.str("id"),
    role: r.str("role"),
    content: r.raw("content"),
    name: r.str("name"),
    toolCallId: r.str("toolCallId"),
    error: r.raw("error"),
    activity: r.str("activityType"),
    subagent: r.str("subagentRunId"),
    metadata: r.raw("metadata"),
    calls: [],
  };
  for (const one of r.list("toolCalls") ?? []) {
    const k = new Reader(one);
    const f = k.sub("function");
    m.calls.push({ id: k.str("id"), name: f.str("name"), args: f.str("arguments") });
    if (!k.ok || !f.ok) return undefined;
  }
  return r.ok ? m : undefined;
}

export function messageAdded(_: Conversation, t: ThreadFold, e: Event): boolean {
  const r = read(e);
  const m = readMessage(r.raw("message"));
  if (!r.ok || !m) return false;
  if (makesCall(m)) return true;
  const put = putMessage(t, e, m);
  const digest = promptOf(put);
  if (digest) t.thread.prompt = { digest, offset: put.item.offset };
  for (const one of m.calls) {
    const k = t.call.get(one.id);
    if (k) planByTool(t, k, e);
  }
  if (t.status === "idle" && e.invocation && m.role === "user") t.status = "pending";
  return true;
}

/** A tool_call of a context that a program keeps: an earlier message has its call, so it is no message of its own. */
function makesCall(m: FullMessage): boolean {
  const step = readMeta(m.metadata);
  return step.str("step") === "tool_call" && step.str("call") !== "";
}

/** The digest of the system prompt that a message stores; "" for any other message. */
function promptOf(m: MessageRec): string {
  return m.role === "system" ? readMeta(m.metadata).str("prompt") : "";
}

/** Removes the thread's system prompt if the restated messages do not contain it. */
function dropStalePrompt(t: ThreadFold, restated: Set<MessageRec>): void {
  const p = t.thread.prompt;
  if (!p) return;
  for (const m of restated) if (m.item.offset === p.offset && promptOf(m) === p.digest) return;
  t.thread.prompt = undefined;
}

/**
 * Restates the messages of a thread, as an AG-UI client does. A known message keeps
 * its place, a new one is added last, and one that is not restated is dropped.
 * Reasoning and activity are dropped only if the snapshot has some of their kind.
 */
export function messagesSnapshot(_: Conversation, t: ThreadFold, e: Event): boolean {
  const r = read(e);
  const messages = (r.list("messages") ?? []).map(readMessage);
  if (!r.ok || messages.includes(undefined)) return false;
  const listed: MessageRec[] = [];
  const has = new Set([0]);
  t.restating = true;
  for (const w of messages) {
    const m = putMessage(t, e, w!);
    listed.push(m);
    has.add(groupOf(m.role));
  }
  const restated = new Set(listed);
  if (t.earlier() > 0) reorder(t, listed, e.offset);
  for (let g = 0; g < groups; g++) if (has.has(g)) restate(t, g, restated, e.offset);
  dropStalePrompt(t, restated);
  t.sweep();
  t.restating = false;
  t.settleMessages(e.offset);
  t.settleCalls(e.offset);
  return true;
}

/**
 * Places the messages that had settled and that a MESSAGES_SNAPSHOT adds again.
 * Each goes just before the next message of the snapshot that is still changeable,
 * and gets its offset, because pages are cut by offsets. Without such a message it
 * stays last.
 */
function reorder(t: ThreadFold, listed: MessageRec[], at: number): void {
  const moved = new Set<MessageRec>();
  const before = new Map<MessageRec, MessageRec[]>(); // the messages to put before another, last first
  let next: MessageRec | undefined;
  for (const m of listed.toReversed()) {
    if (moved.has(m)) continue;
    if (m.item.offset < at) {
      next = m;
    } else if (next) {
      m.item = { ...m.item, offset: next.item.offset };
      m.touch();
      moved.add(m);
      const list = before.get(next);
      if (list) list.push(m);
      else before.set(next, [m]);
    }
  }
  t.messages = t.messages.flatMap((m) => (moved.has(m) ? [] : [...(before.get(m) ?? []).toReversed(), m]));
}

/** Drops the messages of a group that are not restated, settled ones included, with their calls. */
function restate(t: ThreadFold, group: number, restated: Set<MessageRec>, at: number): void {
  for (const k of t.calls) {
    if (!k.gone && k.maker?.settled && groupOf(k.maker.role) === group) t.dropCall(k);
  }
  const kept: MessageRec[] = [];
  for (const m of t.groups[group]!) {
    if (restated.has(m)) kept.push(m);
    else t.drop(m);
  }
  t.groups[group] = kept;
  const past = t.past[group]!;
  t.thread.messages -= past.count;
  if (group === 0) t.lost = 0;
  t.past[group] = { count: 0, floor: at };
}

/** Puts a complete message into the conversation: it replaces the message with its name, or is added last. */
export function putMessage(t: ThreadFold, e: Event, w: FullMessage): MessageRec {
  let m = t.message.get(nameOf(w.role, w.id));
  if (!m) {
    m = new MessageRec(begun(t.name, e, "complete"), w.id);
    if (w.subagent) m.item = { ...m.item, subagent: w.subagent };
    m.end(e, "complete");
    add(t, m, w.role, e.offset);
  }
  m.role = w.role;
  m.name = w.name;
  m.metadata = w.metadata;
  m.toolCall = w.toolCallId;
  m.parts = undefined;
  m.text = "";
  if (w.role === "activity") {
    m.activity = w.activity;
    m.doc = w.content;
  } else {
    const { text, parts } = content(w.content);
    m.text = text;
    m.parts = parts;
  }
  m.touch();
  for (const call of w.calls) {
    const k = knownCall(t, e, call.id);
    k.name = call.name;
    k.madeBy(m);
    k.args = call.args;
    k.complete = true;
    k.touch();
  }
  if (w.role === "tool" && w.toolCallId !== "") {
    answer(t, e, w.toolCallId, { messageId: w.id, content: w.content, error: w.error, metadata: w.metadata });
  }
  return m;
}
