import type { Conversation } from "./conversation.ts";
import { isObject, Reader, read } from "./read.ts";
import { begun, ended } from "./record.ts";
import { maxOpen, type ThreadFold, window } from "./thread.ts";
import type { Event, Permission, PermissionOption } from "./types.ts";

export function permissionRequested(_: Conversation, t: ThreadFold, e: Event): boolean {
  const r = read(e);
  const [id, toolCall, message] = [r.str("id"), r.str("toolCallId"), r.str("message")];
  const options: PermissionOption[] = [];
  for (const one of r.list("options") ?? []) {
    const o = new Reader(one);
    const option: PermissionOption = { id: o.str("id") };
    const [name, kind, covers] = [o.str("name"), o.str("kind"), o.str("covers")];
    if (name) option.name = name;
    if (kind) option.kind = kind;
    if (covers) option.covers = covers;
    if (!o.ok) return false;
    options.push(option);
  }
  if (!r.ok || id === "") return false;
  const p: Permission = { ...begun(t.name, e, "idle"), status: "open", id, options };
  if (toolCall) p.tool_call_id = toolCall;
  if (message) p.message = message;
  const action = r.raw("action");
  if (isObject(action)) p.action = action;
  const form = r.raw("form");
  if (Array.isArray(form)) p.form = form;
  t.permissions = settled([...t.permissions, p]);
  return true;
}

/** Drops the oldest request that is not open, if there are too many. */
function settled(list: Permission[]): Permission[] {
  if (list.length <= window) return list;
  let i = list.findIndex((p) => p.status !== "open");
  if (i < 0 && list.length > maxOpen) i = 0;
  return i < 0 ? list : list.toSpliced(i, 1);
}

/**
 * The first answer counts. An answer that names an invocation is for the request of
 * that invocation, even if another one uses the same id.
 */
export function permissionAnswered(_: Conversation, t: ThreadFold, e: Event): boolean {
  const r = read(e);
  const [id, option] = [r.str("id"), r.str("option")];
  if (!r.ok || id === "") return false;
  const asked = (p: Permission) => p.id === id && (!e.invocation || e.invocation === p.invocation);
  const i = t.permissions.findLastIndex(asked);
  const p = t.permissions[i];
  if (p?.status !== "open") return true;
  const answered: Permission = ended(p, e, option ? "answered" : "cancelled");
  if (option) answered.option = option;
  if (option && e.actor) answered.answered_by = e.actor;
  const input = r.raw("input");
  if (option && isObject(input)) answered.input = input;
  t.permissions = t.permissions.with(i, answered);
  return true;
}
