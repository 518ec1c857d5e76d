import { read } from "./read.ts";
import { begun, ended } from "./record.ts";
import { mainThread } from "./timeline.ts";
import type { Event, Input } from "./types.ts";

/** The number of inputs that do not wait any more and are kept. */
const maxEnded = 20;

const waits = (i: Input) => i.status === "waiting";

const ends = new Map<string, Input["status"]>([
  ["input.steered", "steered"],
  ["input.started", "started"],
  ["input.withdrawn", "withdrawn"],
]);

/**
 * Folds an event of an input into the inputs, which are in the order of the queue. An
 * id that does not wait changes nothing. The result is undefined for a malformed event.
 */
export function foldInput(list: readonly Input[], e: Event): readonly Input[] | undefined {
  const r = read(e);
  const [id, text, when, before] = [r.str("id"), r.str("text"), r.str("when"), r.str("before")];
  const [invocation, agent, reason] = [r.str("invocation"), r.str("agent"), r.str("reason")];
  const outside = r.bool("outside");
  if (!r.ok || id === "") return undefined;
  const at = list.findIndex((i) => i.id === id);
  const was = list[at];
  if (e.type === "input.queued") {
    if (was) return list;
    const { invocation: _, ...item } = begun(e.thread || mainThread, e, "idle");
    const i: Input = { ...item, status: "waiting", id, when: (when || "queue") as Input["when"] };
    if (invocation) i.invocation = invocation;
    if (text) i.text = text;
    if (agent) i.agent = agent;
    if (outside) i.outside = true;
    return placed(list, i, before);
  }
  if (!was || !waits(was)) return list;
  if (e.type === "input.moved") return placed(list.toSpliced(at, 1), was, before);
  return trimmed(list.with(at, end(was, e, ends.get(e.type) ?? "withdrawn", invocation, reason)));
}

/** The inputs of a fork: those of its parent do not wait there. */
export function forkInputs(list: readonly Input[], e: Event): readonly Input[] {
  const why = "it waits in the session from which this one was forked";
  return trimmed(list.map((i) => (waits(i) ? end(i, e, "withdrawn", "", why) : i)));
}

function placed(list: readonly Input[], i: Input, before: string): readonly Input[] {
  const to = list.findIndex((o) => o.id === before && waits(o));
  return list.toSpliced(to < 0 ? list.length : to, 0, i);
}

function end(i: Input, e: Event, status: Input["status"], invocation: string, reason: string): Input {
  const { invocation: planned, text, ...rest } = ended(i, e, status);
  if (status !== "withdrawn") {
    const run = invocation || planned;
    return run ? { ...rest, invocation: run } : rest;
  }
  const out: Input = { ...rest };
  if (text) out.text = text;
  if (reason) out.reason = reason;
  return out;
}

/** Drops the first inputs that do not wait, if there are too many. */
function trimmed(list: readonly Input[]): readonly Input[] {
  let more = list.filter((i) => !waits(i)).length - maxEnded;
  return more <= 0 ? list : list.filter((i) => waits(i) || more-- <= 0);
}
