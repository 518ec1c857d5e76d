import type { Conversation } from "./conversation";
import { groupOf, groups, type Lane } from "./lane";
import { add } from "./message";
import { content, isObject, Reader, read } from "./read";
import { begun, MessageRec } from "./record";
import { answer, knownCall, planByTool } from "./tool";
import type { Event, Json } from "./types";

interface Whole {
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

function whole(raw: Json | undefined): Whole | undefined {
  const r = new Reader(raw);
  const m: Whole = {
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

export function messageAdded(_: Conversation, l: Lane, e: Event): boolean {
  const r = read(e);
  const m = whole(r.raw("message"));
  if (!r.ok || !m) return false;
  const put = putMessage(l, e, m);
  const digest = promptOf(put);
  if (digest) l.thread.prompt = { digest, offset: put.item.offset };
  for (const one of m.calls) {
    const k = l.call.get(one.id);
    if (k) planByTool(l, k, e);
  }
  if (l.status === "idle" && e.invocation && m.role === "user") l.status = "pending";
  return true;
}

/** The digest in the mark of a message that stores the system text of a model; "" for any other. */
function promptOf(m: MessageRec): string {
  const ours = new Reader(m.metadata).sub("tapedeck");
  return m.role === "system" ? ours.str("prompt") : "";
}

/** Forgets the system text of the model if the messages that are restated do not have it. */
function keepPrompt(l: Lane, restated: Set<MessageRec>): void {
  const p = l.thread.prompt;
  if (!p) return;
  for (const m of restated) if (m.item.offset === p.offset && promptOf(m) === p.digest) return;
  l.thread.prompt = undefined;
}

/**
 * Restates the messages of a thread, as an AG-UI client does: a message that is
 * there keeps its place, a new one comes last, and one that is not restated goes;
 * except that reasoning and activity go only if the snapshot has some of their kind.
 */
export function messagesSnapshot(_: Conversation, l: Lane, e: Event): boolean {
  const r = read(e);
  const messages = (r.list("messages") ?? []).map(whole);
  if (!r.ok || messages.includes(undefined)) return false;
  const said: MessageRec[] = [];
  const has = new Set([0]);
  l.restating = true;
  for (const w of messages) {
    const m = putMessage(l, e, w!);
    said.push(m);
    has.add(groupOf(m.role));
  }
  const restated = new Set(said);
  if (l.earlier() > 0) reorder(l, said, e.offset);
  for (let g = 0; g < groups; g++) if (has.has(g)) restate(l, g, restated, e.offset);
  keepPrompt(l, restated);
  l.sweep();
  l.restating = false;
  l.settleMessages(e.offset);
  l.settleCalls(e.offset);
  return true;
}

/**
 * Gives places to messages that a MESSAGES_SNAPSHOT says anew, because they had
 * settled. Each comes just before the next one in the snapshot that is still at
 * hand, and gets its offset, for pages go by offsets; without such a one it comes
 * last.
 */
function reorder(l: Lane, said: MessageRec[], at: number): void {
  const moved = new Set<MessageRec>();
  const before = new Map<MessageRec, MessageRec[]>(); // what comes before another, from the last to the first
  let next: MessageRec | undefined;
  for (const m of said.toReversed()) {
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
  l.messages = l.messages.flatMap((m) => (moved.has(m) ? [] : [...(before.get(m) ?? []).toReversed(), m]));
}

/** Drops the messages of a group that are not restated, those that have settled among them, with the calls that they made. */
function restate(l: Lane, group: number, restated: Set<MessageRec>, at: number): void {
  for (const k of l.calls) {
    if (!k.gone && k.maker?.settled && groupOf(k.maker.role) === group) l.dropCall(k);
  }
  const kept: MessageRec[] = [];
  for (const m of l.groups[group]!) {
    if (restated.has(m)) kept.push(m);
    else l.drop(m);
  }
  l.groups[group] = kept;
  const past = l.past[group]!;
  l.thread.messages -= past.count;
  if (group === 0) l.lost = 0;
  l.past[group] = { count: 0, floor: at };
}

/** Puts a whole message into the conversation: in the place of that of its id, or last. */
export function putMessage(l: Lane, e: Event, w: Whole): MessageRec {
  let m = l.message.get(w.id);
  if (!m || groupOf(m.role) !== groupOf(w.role)) {
    m = new MessageRec(begun(l.name, e, "complete"), w.id);
    if (w.subagent) m.item = { ...m.item, subagent: w.subagent };
    m.end(e, "complete");
    add(l, m, w.role, e.offset);
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
  for (const t of w.calls) {
    const k = knownCall(l, e, t.id);
    k.name = t.name;
    k.madeBy(m);
    k.args = t.args;
    k.complete = true;
    k.touch();
  }
  if (w.role === "tool" && w.toolCallId !== "") {
    const metadata = isObject(w.metadata) ? w.metadata.tapedeck : undefined;
    const [failed, took] = isObject(metadata) ? [metadata.error === true, metadata.durationMs] : [false, undefined];
    answer(l, e, w.toolCallId, { messageId: w.id, content: w.content, error: w.error, failed, took });
  }
  return m;
}
