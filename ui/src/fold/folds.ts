import type { Conversation } from "./conversation";
import { groupOf, groups, type Lane, maxOpen, window } from "./lane";
import { patch, Unpatchable } from "./patch";
import { content, isObject, Reader, read } from "./read";
import { begun, CallRec, ended, MessageRec, RunRec } from "./record";
import type { Event, Json, Permission, PermissionOption, PlanEntry, Status, ToolResult } from "./types";

/** What an event type does. It reports false if the data of the event has another shape than its type says. */
type Fold = (c: Conversation, l: Lane, e: Event) => boolean;

// Messages

function textStart(_: Conversation, l: Lane, e: Event): boolean {
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

function add(l: Lane, m: MessageRec, role: string, at: number): void {
  l.add(m, role);
  l.settleMessages(at);
}

function textContent(_: Conversation, l: Lane, e: Event): boolean {
  const d = delta(e, "messageId");
  if (!d) return false;
  const m = l.message.get(d.id) ?? stream(l, e, d.id); // its start was not given to us; no text is lost
  m.text += d.text;
  m.touch();
  return true;
}

/** Reads what most events of a log are: more of something. */
function delta(e: Event, name: string): { id: string; text: string } | undefined {
  const id = e.data?.[name];
  const text = e.data?.delta;
  if (typeof id !== "string" || id === "") return undefined;
  if (typeof text === "string") return { id, text };
  return text === null ? { id, text: "" } : undefined;
}

function textEnd(_: Conversation, l: Lane, e: Event): boolean {
  const r = read(e);
  const m = l.message.get(r.str("messageId"));
  if (!r.ok) return false;
  if (m) {
    m.end(e, "complete");
    l.open.get(m.invocation)?.messages.delete(m);
  }
  return true;
}

// Tool calls

function toolStart(_: Conversation, l: Lane, e: Event): boolean {
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

function knownCall(l: Lane, e: Event, id: string): CallRec {
  return l.call.get(id) ?? newCall(l, e, id);
}

function toolArgs(_: Conversation, l: Lane, e: Event): boolean {
  const d = delta(e, "toolCallId");
  if (!d) return false;
  const k = knownCall(l, e, d.id);
  k.args += d.text;
  k.touch();
  return true;
}

function toolEnd(_: Conversation, l: Lane, e: Event): boolean {
  const r = read(e);
  const k = l.call.get(r.str("toolCallId"));
  if (!r.ok) return false;
  if (!k) return true;
  k.complete = true;
  k.touch();
  if (l.isOpen(k)) k.status("running");
  if (k.name === "TodoWrite") planByTool(l, k, e);
  return true;
}

/** Takes the plan from the tool with which some agents keep it. What else its arguments may be is not a plan. */
function planByTool(l: Lane, k: CallRec, e: Event): void {
  const r = new Reader(k.input());
  const entries = planEntries(r.list("todos"));
  if (r.ok && entries) setPlan(l, e, entries);
}

interface Answer {
  messageId: string;
  content: Json | undefined;
  error: Json | undefined;
  failed: boolean; // as its metadata says
}

function toolResult(_: Conversation, l: Lane, e: Event): boolean {
  const r = read(e);
  const [id, messageId] = [r.str("toolCallId"), r.str("messageId")];
  const metadata = r.sub("metadata");
  const ours = metadata.sub("tapedeck");
  const failed = ours.bool("error") ?? false;
  if (!r.ok || !metadata.ok || !ours.ok || id === "") return false;
  answer(l, e, id, { messageId, content: r.raw("content"), error: r.raw("error"), failed });
  return true;
}

function answer(l: Lane, e: Event, id: string, a: Answer): void {
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

// Whole messages

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

function messageAdded(_: Conversation, l: Lane, e: Event): boolean {
  const r = read(e);
  const m = whole(r.raw("message"));
  if (!r.ok || !m) return false;
  putMessage(l, e, m);
  if (l.status === "idle" && e.invocation && m.role === "user") l.status = "pending";
  return true;
}

/**
 * Restates the messages of a thread, as an AG-UI client does: a message that is
 * there keeps its place, a new one comes last, and one that is not restated goes;
 * except that reasoning and activity go only if the snapshot has some of their kind.
 */
function messagesSnapshot(_: Conversation, l: Lane, e: Event): boolean {
  const r = read(e);
  const messages = (r.list("messages") ?? []).map(whole);
  if (!r.ok || messages.includes(undefined)) return false;
  const restated = new Map<MessageRec, number>(); // and where in the snapshot
  const has = new Set([0]);
  l.restating = true;
  messages.forEach((w, i) => {
    const m = putMessage(l, e, w!);
    restated.set(m, i);
    has.add(groupOf(m.role));
  });
  if (l.earlier() > 0) reorder(l, restated);
  for (let g = 0; g < groups; g++) if (has.has(g)) restate(l, g, restated, e.offset);
  l.sweep();
  l.restating = false;
  l.settleMessages(e.offset);
  l.settleCalls(e.offset);
  return true;
}

/**
 * Brings what is restated into the order of the snapshot, where it says again what
 * has settled: as that begins anew, it would come last otherwise.
 */
function reorder(l: Lane, restated: Map<MessageRec, number>): void {
  for (const list of [l.messages, ...l.groups]) {
    const places: number[] = [];
    const messages: MessageRec[] = [];
    list.forEach((m, i) => {
      if (!restated.has(m) || m.gone) return;
      places.push(i);
      messages.push(m);
    });
    messages.sort((a, b) => restated.get(a)! - restated.get(b)!);
    places.forEach((at, i) => {
      list[at] = messages[i]!;
    });
  }
}

/** Drops the messages of a group that are not restated, those that have settled among them, with the calls that they made. */
function restate(l: Lane, group: number, restated: Map<MessageRec, number>, at: number): void {
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
function putMessage(l: Lane, e: Event, w: Whole): MessageRec {
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
    const failed = isObject(metadata) && metadata.error === true;
    answer(l, e, w.toolCallId, { messageId: w.id, content: w.content, error: w.error, failed });
  }
  return m;
}

// Runs

function runStarted(c: Conversation, l: Lane, e: Event): boolean {
  const w = l.work(e.invocation ?? "");
  w.run?.end(e, "interrupted"); // started again; its end was lost
  w.run = addRun(l, e);
  const r = read(e); // if it is not well-formed, the run has begun all the same
  const metadata = r.sub("metadata");
  const ours = metadata.sub("tapedeck");
  w.run.agent = ours.str("agent");
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
function subagentStarted(_: Conversation, l: Lane, e: Event): boolean {
  const r = read(e);
  const metadata = r.sub("metadata");
  const ours = metadata.sub("tapedeck");
  const [call, thread] = [r.str("parentToolCallId"), ours.str("thread")];
  ours.str("agent");
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

function runEnded(_: Conversation, l: Lane, e: Event): boolean {
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

// State, plan, activity

function stateSnapshot(_: Conversation, l: Lane, e: Event): boolean {
  const r = read(e);
  const value = r.raw("snapshot");
  if (!r.ok || value === undefined) return false;
  l.state = { value, shared: 0, offset: e.offset, invocation: e.invocation ?? "" };
  return true;
}

function stateDelta(c: Conversation, l: Lane, e: Event): boolean {
  const r = read(e);
  if (!r.ok) return false;
  attempt(c, e, () => {
    if (l.state.shared > 0) c.purse.spend(l.state.shared); // there may be any number of threads
    l.state = { ...l.state, shared: 0 };
    const value = patch(l.state.value ?? {}, r.raw("delta"), c.purse);
    l.state = { value, shared: 0, offset: e.offset, invocation: e.invocation ?? "" };
  });
  return true;
}

/** Notes what cannot be patched. */
function attempt(c: Conversation, e: Event, change: () => void): void {
  try {
    change();
  } catch (err) {
    if (!(err instanceof Unpatchable)) throw err;
    c.note(e, "unpatchable");
  }
}

function planUpdated(_: Conversation, l: Lane, e: Event): boolean {
  const r = read(e);
  const entries = planEntries(r.list("entries"));
  if (!r.ok || !entries) return false;
  setPlan(l, e, entries);
  return true;
}

function planEntries(list: Json[] | undefined): PlanEntry[] | undefined {
  const out: PlanEntry[] = [];
  for (const one of list ?? []) {
    const r = new Reader(one);
    const entry: PlanEntry = { content: r.str("content") };
    const [status, priority] = [r.str("status"), r.str("priority")];
    if (!r.ok) return undefined;
    if (status) entry.status = status;
    if (priority) entry.priority = priority;
    out.push(entry);
  }
  return list && out;
}

function setPlan(l: Lane, e: Event, entries: PlanEntry[]): void {
  l.plan = { offset: e.offset, thread: l.name, timestamp: e.timestamp, entries };
  if (e.invocation) l.plan.invocation = e.invocation;
}

function activitySnapshot(_: Conversation, l: Lane, e: Event): boolean {
  const r = read(e);
  const [id, activity, subagent] = [r.str("messageId"), r.str("activityType"), r.str("subagentRunId")];
  const replace = r.bool("replace");
  if (!r.ok || id === "") return false;
  if (replace === false && l.message.get(id)?.role === "activity") return true;
  putMessage(l, e, {
    id,
    role: "activity",
    activity,
    subagent,
    content: r.raw("content"),
    name: "",
    toolCallId: "",
    error: undefined,
    metadata: undefined,
    calls: [],
  });
  return true;
}

function activityDelta(c: Conversation, l: Lane, e: Event): boolean {
  const r = read(e);
  const m = l.message.get(r.str("messageId"));
  if (!r.ok) return false;
  attempt(c, e, () => {
    if (m?.role !== "activity") throw new Unpatchable();
    m.doc = patch(m.doc ?? {}, r.raw("patch"), c.purse);
    m.touch();
  });
  return true;
}

// Permissions

function permissionRequested(_: Conversation, l: Lane, e: Event): boolean {
  const r = read(e);
  const [id, toolCall, message] = [r.str("id"), r.str("toolCallId"), r.str("message")];
  const options: PermissionOption[] = [];
  for (const one of r.list("options") ?? []) {
    const o = new Reader(one);
    const option: PermissionOption = { id: o.str("id") };
    const [name, kind] = [o.str("name"), o.str("kind")];
    if (name) option.name = name;
    if (kind) option.kind = kind;
    if (!o.ok) return false;
    options.push(option);
  }
  if (!r.ok || id === "") return false;
  const p: Permission = { ...begun(l.name, e, "idle"), status: "open", id, options };
  if (toolCall) p.tool_call_id = toolCall;
  if (message) p.message = message;
  l.permissions = settled([...l.permissions, p]);
  return true;
}

/** Lets go of the oldest one that is not open, if there are too many. */
function settled(list: Permission[]): Permission[] {
  if (list.length <= window) return list;
  let i = list.findIndex((p) => p.status !== "open");
  if (i < 0 && list.length > maxOpen) i = 0;
  return i < 0 ? list : list.toSpliced(i, 1);
}

/** The first answer counts. */
function permissionAnswered(_: Conversation, l: Lane, e: Event): boolean {
  const r = read(e);
  const [id, option] = [r.str("id"), r.str("option")];
  if (!r.ok || id === "") return false;
  const i = l.permissions.findLastIndex((p) => p.id === id);
  const p = l.permissions[i];
  if (p?.status !== "open") return true;
  const answered: Permission = ended(p, e, option ? "answered" : "cancelled");
  if (option) answered.option = option;
  if (option && e.actor) answered.answered_by = e.actor;
  l.permissions = l.permissions.with(i, answered);
  return true;
}

function agentLinked(_: Conversation, l: Lane, e: Event): boolean {
  const r = read(e);
  const [runner, native_id] = [r.str("runner"), r.str("nativeId")];
  if (!r.ok || native_id === "") return false;
  l.thread.link = { runner, native_id, offset: e.offset };
  if (e.invocation) l.thread.link.invocation = e.invocation;
  return true;
}

export const folds = new Map<string, Fold>([
  ["message.added", messageAdded],
  ["MESSAGES_SNAPSHOT", messagesSnapshot],
  ["TEXT_MESSAGE_START", textStart],
  ["TEXT_MESSAGE_CONTENT", textContent],
  ["TEXT_MESSAGE_END", textEnd],
  ["REASONING_MESSAGE_START", textStart],
  ["REASONING_MESSAGE_CONTENT", textContent],
  ["REASONING_MESSAGE_END", textEnd],
  ["ACTIVITY_SNAPSHOT", activitySnapshot],
  ["ACTIVITY_DELTA", activityDelta],
  ["TOOL_CALL_START", toolStart],
  ["TOOL_CALL_ARGS", toolArgs],
  ["TOOL_CALL_END", toolEnd],
  ["TOOL_CALL_RESULT", toolResult],
  ["RUN_STARTED", runStarted],
  ["RUN_FINISHED", runEnded],
  ["RUN_ERROR", runEnded],
  ["SUBAGENT_STARTED", subagentStarted],
  ["STATE_SNAPSHOT", stateSnapshot],
  ["STATE_DELTA", stateDelta],
  ["plan.updated", planUpdated],
  ["permission.requested", permissionRequested],
  ["permission.answered", permissionAnswered],
  ["agent.linked", agentLinked],
]);
