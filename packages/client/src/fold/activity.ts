import type { Conversation } from "./conversation.ts";
import { patch, Unpatchable } from "./patch.ts";
import { read } from "./read.ts";
import { putMessage } from "./restate.ts";
import { attempt } from "./state.ts";
import { nameOf, type ThreadFold } from "./thread.ts";
import type { Event } from "./types.ts";

export function activitySnapshot(_: Conversation, t: ThreadFold, e: Event): boolean {
  const r = read(e);
  const [id, activity, subagent] = [r.str("messageId"), r.str("activityType"), r.str("subagentRunId")];
  const replace = r.bool("replace");
  if (!r.ok || id === "") return false;
  if (replace === false && t.message.has(nameOf("activity", id))) return true;
  putMessage(t, e, {
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

export function activityDelta(c: Conversation, t: ThreadFold, e: Event): boolean {
  const r = read(e);
  const m = t.message.get(nameOf("activity", r.str("messageId")));
  if (!r.ok) return false;
  attempt(c, e, () => {
    if (!m) throw new Unpatchable();
    m.doc = patch(m.doc === undefined ? {} : m.doc, r.raw("patch"), c.budget);
    m.touch();
  });
  return true;
}
