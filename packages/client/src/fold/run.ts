import type { Conversation } from "./conversation.ts";
import { Reader, read, readMeta } from "./read.ts";
import { begun, RunRec } from "./record.ts";
import type { ThreadFold } from "./thread.ts";
import { jumpOf } from "./timeline.ts";
import type { Event, Retry, Status } from "./types.ts";

export function runStarted(c: Conversation, t: ThreadFold, e: Event): boolean {
  const w = t.work(e.invocation ?? "");
  w.run?.end(e, "interrupted"); // the run starts again; its end event was lost
  w.run = addRun(t, e);
  const r = read(e); // even if it is malformed, the run has started
  const ours = readMeta(r.raw("metadata"));
  w.run.agent = ours.str("agent");
  w.run.context = ours.str("context");
  w.run.parent = r.str("parentRunId");
  const parent = c.threadOf(w.run.parent, t);
  if (parent !== undefined) t.thread.parent = parent;
  t.status = "running";
  return r.ok;
}

const maxCallThreads = 100;

/** Adds the thread of a sub-agent to the tool call that started it. Events of other hosts name no thread. */
export function subagentStarted(_: Conversation, t: ThreadFold, e: Event): boolean {
  const r = read(e);
  const ours = readMeta(r.raw("metadata"));
  const [call, thread] = [r.str("parentToolCallId"), ours.str("thread")];
  if (!r.ok) return false;
  const k = t.call.get(call);
  if (k && thread !== "" && !k.threads.includes(thread) && k.threads.length < maxCallThreads) {
    k.threads = [...k.threads, thread];
    k.touch();
  }
  return true;
}

const maxRetries = 100;

/** Notes that the open run of e repeats a step. The timeline leaves out what that reverts. False: malformed. */
export function attemptSuperseded(t: ThreadFold, e: Event): boolean {
  const run = t.open.get(e.invocation ?? "")?.run;
  if (!run) return true;
  const r = read(e);
  const [attempt, reason] = [r.int("attempt"), r.str("reason")];
  if (!r.ok) return false;
  const retry: Retry = { from: jumpOf(e)?.to ?? e.offset, to: e.offset, attempt };
  if (reason) retry.reason = reason;
  run.retries = [...run.retries.slice(1 - maxRetries), retry];
  run.touch();
  return true;
}

function addRun(t: ThreadFold, e: Event): RunRec {
  const r = new RunRec(begun(t.name, e, "running"));
  t.runs.push(r);
  t.settleRuns(e.offset);
  return r;
}

export function runEnded(_: Conversation, t: ThreadFold, e: Event): boolean {
  const r = read(e); // even if it is malformed, the run has ended
  const outcome = r.sub("outcome");
  const ours = readMeta(r.raw("metadata"));
  const [message, code] = [r.str("message"), r.str("code")];
  const w = t.work(e.invocation ?? "");
  w.run ??= addRun(t, e); // the run failed before RUN_STARTED
  w.run.result = r.raw("result");
  w.run.usage = r.raw("usage");
  w.run.interrupts = outcome.raw("interrupts");
  w.run.resumable = ours.bool("resumable");
  if (e.type === "RUN_ERROR") w.run.error = code ? { message, code } : { message };
  t.end(e.invocation ?? "", e, endStatus(e));
  return r.ok && outcome.ok;
}

/** The status of a run after its terminal event. */
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

export function agentLinked(_: Conversation, t: ThreadFold, e: Event): boolean {
  const r = read(e);
  const [runner, native_id] = [r.str("runner"), r.str("nativeId")];
  if (!r.ok || native_id === "") return false;
  t.thread.link = { runner, native_id, offset: e.offset };
  if (e.invocation) t.thread.link.invocation = e.invocation;
  return true;
}
