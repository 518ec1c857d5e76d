import type { Conversation } from "./conversation";
import type { Lane } from "./lane";
import { patch, Unpatchable } from "./patch";
import { read } from "./read";
import { putMessage } from "./restate";
import { attempt } from "./state";
import type { Event } from "./types";

export function activitySnapshot(_: Conversation, l: Lane, e: Event): boolean {
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

export function activityDelta(c: Conversation, l: Lane, e: Event): boolean {
  const r = read(e);
  const m = l.message.get(r.str("messageId"));
  if (!r.ok) return false;
  attempt(c, e, () => {
    if (m?.role !== "activity") throw new Unpatchable();
    m.doc = patch(m.doc === undefined ? {} : m.doc, r.raw("patch"), c.purse);
    m.touch();
  });
  return true;
}
