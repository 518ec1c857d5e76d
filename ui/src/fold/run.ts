import type { Conversation } from "./conversation";
import type { Lane } from "./lane";
import { Reader, read } from "./read";
import { begun, RunRec } from "./record";
import type { Event, Status } from "./types";

export function runStarted(c: Conversation, l: Lane, e: Event): boolean {
  const w = l.work(e.invocation ?? "");
  w.run?.end(e, "interrupted"); // started again; its end was lost
  w.run = addRun(l, e);
  const r = read(e); // if it is not well-formed, the run has begun all the same
  const metadata = r.sub("metadata");
  const ours = metadata.sub("tapedeck");
  w.run.agent = ours.str("agent");
  w.run.context = ours.str("context");
  w.run.parent = r.str("parentRunId");
  const parent = c.threadOf(w.run.parent, l);
  if (parent !== undefined) l.thread.parent = parent;
  ours.bool("resumable");
  ours.str("thread");
  l.status = "running";
  return r.ok && metadata.ok && ours.ok;
}

const maxCallThreads = 100;

/** Notes in a tool call which thread the sub-agent has that it has started. Those of other hosts have none. */
export function subagentStarted(_: Conversation, l: Lane, e: Event): boolean {
  const r = read(e);
  const metadata = r.sub("metadata");
  const ours = metadata.sub("tapedeck");
  const [call, thread] = [r.str("parentToolCallId"), ours.str("thread")];
  ours.str("agent");
  ours.str("context");
  ours.bool("resumable");
  if (!r.ok || !metadata.ok || !ours.ok) return false;
  const k = l.call.get(call);
  if (k && thread !== "" && !k.threads.includes(thread) && k.threads.length < maxCallThreads) {
    k.threads = [...k.threads, thread];
    k.touch();
  }
  return true;
}

function addRun(l: Lane, e: Event): RunRec {
  const r = new RunRec(begun(l.name, e, "running"));
  l.runs.push(r);
  l.settleRuns(e.offset);
  return r;
}

export function runEnded(_: Conversation, l: Lane, e: Event): boolean {
  const r = read(e); // if it is not well-formed, the run has ended all the same
  const outcome = r.sub("outcome");
  const metadata = r.sub("metadata");
  const ours = metadata.sub("tapedeck");
  const [message, code] = [r.str("message"), r.str("code")];
  const w = l.work(e.invocation ?? "");
  w.run ??= addRun(l, e); // it failed before it started
  w.run.result = r.raw("result");
  w.run.usage = r.raw("usage");
  w.run.interrupts = outcome.raw("interrupts");
  w.run.resumable = ours.bool("resumable");
  ours.str("agent");
  ours.str("context");
  ours.str("thread");
  if (e.type === "RUN_ERROR") w.run.error = code ? { message, code } : { message };
  l.end(e.invocation ?? "", e, endStatus(e));
  return r.ok && outcome.ok && metadata.ok && ours.ok;
}

/** The status that a terminal event leaves. */
function endStatus(e: Event): Status {
  const r = new Reader(e.data);
  if (e.type === "RUN_ERROR") {
    const code = r.str("code");
    return code === "interrupted_by_restart" || code === "lease_expired" ? "interrupted" : "failed";
  }
  const type = r.sub("outcome").str("type");
  if (type === "cancelled") return "cancelled";
  return type === "interrupt" ? "interrupted" : "complete";
}

export function agentLinked(_: Conversation, l: Lane, e: Event): boolean {
  const r = read(e);
  const [runner, native_id] = [r.str("runner"), r.str("nativeId")];
  if (!r.ok || native_id === "") return false;
  l.thread.link = { runner, native_id, offset: e.offset };
  if (e.invocation) l.thread.link.invocation = e.invocation;
  return true;
}
