import { groupOf, type Lane } from "./lane";
import { CallRec, MessageRec, RunRec } from "./record";
import type { Item, Message, Run, Snapshot, ToolCall } from "./types";

/**
 * Joins lists by offset. Within each list the order stays as it is: a
 * MESSAGES_SNAPSHOT may have said another one.
 */
export function merge<T extends { offset: number }>(lists: T[][]): T[] {
  if (lists.length === 0) return [];
  if (lists.length === 1) return lists[0]!;
  const half = lists.length >> 1;
  return two(merge(lists.slice(0, half)), merge(lists.slice(half)));
}

function two<T extends { offset: number }>(a: T[], b: T[]): T[] {
  if (a.length === 0) return b;
  const out: T[] = [];
  let j = 0;
  for (const item of a) {
    while (j < b.length && b[j]!.offset < item.offset) out.push(b[j++]!);
    out.push(item);
  }
  for (; j < b.length; j++) out.push(b[j]!);
  return out;
}

/** Puts what a snapshot has of a thread into its lane. */
export function recent(l: Lane, s: Snapshot): void {
  const own = <T extends Item>(items: T[] | null) => (items ?? []).filter((i) => i.thread === l.name);
  l.ended = Math.max(0, ...own(s.runs).map((r) => r.end_offset ?? 0));
  for (const run of own(s.runs)) addRun(l, run);
  for (const m of own(s.messages)) addMessage(l, m);
  for (const k of own(s.tool_calls)) addCall(l, k);
  l.permissions = (s.permissions ?? []).filter((p) => p.thread === l.name);
  l.lost = l.thread.messages - l.messages.length;
  l.past[0]!.count = l.lost;
}

function addRun(l: Lane, run: Run): void {
  const { agent, parent, resumable, error, result, interrupts, usage, ...item } = run;
  const r = Object.assign(new RunRec(item), {
    agent: agent ?? "",
    parent: parent ?? "",
    resumable,
    error,
    result,
    interrupts,
    usage,
  });
  l.runs.push(r);
  if (run.status === "running") l.work(r.invocation).run = r;
}

function addMessage(l: Lane, m: Message): void {
  const { id, role, name, text, parts, tool_call_id, activity_type, content, metadata, ...item } = m;
  const rec = Object.assign(new MessageRec(item, id), {
    role,
    name: name ?? "",
    text,
    parts,
    toolCall: tool_call_id ?? "",
    activity: activity_type ?? "",
    doc: content,
    metadata,
  });
  l.messages.push(rec);
  l.groups[groupOf(role)]!.push(rec);
  if (id !== "") l.message.set(id, rec);
  if (m.status === "running") l.work(rec.invocation).messages.add(rec);
}

function addCall(l: Lane, k: ToolCall): void {
  const { id, name, message_id, arguments: args, input, result, threads, ...item } = k;
  const rec = Object.assign(new CallRec(item, id), {
    name,
    messageId: message_id ?? "",
    args,
    result,
    threads: threads ?? [],
  });
  rec.complete = k.status !== "pending" || input !== undefined;
  l.calls.push(rec);
  l.call.set(id, rec);
  rec.madeBy(message_id === undefined ? undefined : l.message.get(message_id));
  const open = k.end_offset === undefined && l.open.get(rec.invocation)?.run !== undefined;
  if (open || k.status === "running") l.work(rec.invocation).calls.add(rec);
}
