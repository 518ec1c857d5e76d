import { CallRec, MessageRec, RunRec } from "./record.ts";
import { groupOf, type ThreadFold } from "./thread.ts";
import type { Item, Message, Run, Snapshot, ToolCall } from "./types.ts";

/**
 * Merges lists by offset. The order within each list is kept: a MESSAGES_SNAPSHOT
 * may have set one that is not by offset.
 */
export function merge<T extends { offset: number }>(lists: T[][]): T[] {
  if (lists.length === 0) return [];
  if (lists.length === 1) return lists[0]!;
  const half = lists.length >> 1;
  return mergeTwo(merge(lists.slice(0, half)), merge(lists.slice(half)));
}

function mergeTwo<T extends { offset: number }>(a: T[], b: T[]): T[] {
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

/** Fills the fold of a thread from a snapshot. */
export function loadThread(t: ThreadFold, s: Snapshot): void {
  const own = <T extends Item>(items: T[] | null) => (items ?? []).filter((i) => i.thread === t.name);
  t.ended = Math.max(0, ...own(s.runs).map((r) => r.end_offset ?? 0));
  for (const run of own(s.runs)) addRun(t, run);
  for (const m of own(s.messages)) addMessage(t, m);
  for (const k of own(s.tool_calls)) addCall(t, k);
  t.permissions = (s.permissions ?? []).filter((p) => p.thread === t.name);
  t.lost = t.thread.messages - t.messages.length;
  t.past[0]!.count = t.lost;
}

function addRun(t: ThreadFold, run: Run): void {
  const { agent, parent, resumable, error, result, interrupts, usage, retries, ...item } = run;
  const r = Object.assign(new RunRec(item), {
    agent: agent ?? "",
    parent: parent ?? "",
    resumable,
    error,
    result,
    interrupts,
    usage,
    retries: retries ?? [],
  });
  t.runs.push(r);
  if (run.status === "running") t.work(r.invocation).run = r;
}

function addMessage(t: ThreadFold, m: Message): void {
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
  t.messages.push(rec);
  t.groups[groupOf(role)]!.push(rec);
  t.index(rec);
  if (m.status === "running") t.work(rec.invocation).messages.add(rec);
}

function addCall(t: ThreadFold, k: ToolCall): void {
  const { id, name, message_id, arguments: args, input, result, threads, ...item } = k;
  const rec = Object.assign(new CallRec(item, id), {
    name,
    messageId: message_id ?? "",
    args,
    result,
    threads: threads ?? [],
  });
  rec.complete = k.status !== "pending" || input !== undefined;
  t.calls.push(rec);
  t.call.set(id, rec);
  rec.madeBy(message_id === undefined ? undefined : t.maker(message_id));
  const inRun = t.open.get(rec.invocation)?.run !== undefined;
  const outside = rec.invocation === "" && !t.runs.some((r) => r.invocation === ""); // no run ends it
  const open = k.end_offset === undefined && (inRun || outside);
  if (open || k.status === "running") t.work(rec.invocation).calls.add(rec);
}
