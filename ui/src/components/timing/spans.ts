import type { Envelope as Event, Run, Snapshot, ToolCall } from "@tapedeck/client";
import { callsOf, type ModelCall, withUsage } from "./calls";

/** A line of the waterfall. */
export type Span = {
  key: string;
  offset: number;
  /** How far it is indented: a sub-agent is below the run that started it. */
  depth: number;
  /** From when to when, in milliseconds since 1970; until is absent while it is open. */
  from: number;
  until: number | undefined;
} & (
  | { kind: "run"; run: Run; turn: number | undefined }
  | { kind: "model"; call: ModelCall }
  | { kind: "tool"; call: ToolCall }
);

/** A run with all that happened in it, also in its sub-agents: these lines share an axis. */
export interface Turn {
  key: string;
  from: number;
  until: number;
  spans: Span[];
}

type Parts = Pick<Snapshot, "messages" | "tool_calls" | "runs" | "threads">;

/** The deepest indent. */
const maxDepth = 4;

/** The turns of a session, oldest first. Runs of sub-agents are in the turn in which they took place. */
export function turnsOf(view: Parts, reports: Event[]): Turn[] {
  const parents = new Map(view.threads.map((t) => [t.name, t.parent]));
  const depthOf = (thread: string) => {
    let depth = 0;
    for (let t = parents.get(thread); t && depth < maxDepth; t = parents.get(t)) depth++;
    return depth;
  };
  const turns: Turn[] = [];
  let n = 0;
  for (const run of [...view.runs].sort((a, b) => a.offset - b.offset)) {
    const depth = depthOf(run.thread);
    const top = depth === 0 || turns.length === 0;
    const spans = spansOf(run, depth, top ? ++n : undefined, view, reports);
    const last = turns.at(-1);
    if (top || !last) turns.push({ key: `r${run.offset}`, from: 0, until: 0, spans });
    else last.spans.push(...spans);
  }
  for (const t of turns) {
    t.spans.sort((a, b) => a.offset - b.offset);
    t.from = t.spans.reduce((x, s) => Math.min(x, s.from), Number.POSITIVE_INFINITY);
    t.until = t.spans.reduce((x, s) => Math.max(x, s.until ?? s.from), t.from);
  }
  return turns;
}

function spansOf(run: Run, depth: number, turn: number | undefined, view: Parts, reports: Event[]): Span[] {
  const from = Date.parse(run.started_at);
  const end = (at: string | undefined) => (at === undefined ? undefined : Date.parse(at));
  const tools = view.tool_calls.filter((c) => c.thread === run.thread && c.invocation === run.invocation);
  return [
    { kind: "run", key: `r${run.offset}`, offset: run.offset, depth, from, until: end(run.ended_at), run, turn },
    ...withUsage(callsOf(run, view), reports).map(
      (call): Span => ({
        kind: "model",
        key: call.key,
        offset: call.first - 0.5, // before the tool that it calls
        depth: depth + 1,
        from: call.sent,
        until: call.ended,
        call,
      }),
    ),
    ...tools.map(
      (call): Span => ({
        kind: "tool",
        key: `t${call.offset}`,
        offset: call.offset,
        depth: depth + 1,
        from: Date.parse(call.started_at),
        until: end(call.ended_at),
        call,
      }),
    ),
  ];
}

/** The place of a bar on the axis of its turn, in percent. A bar always has some width. */
export function placeOf(span: Pick<Span, "from" | "until">, turn: Pick<Turn, "from" | "until">) {
  const length = turn.until - turn.from;
  if (!(length > 0)) return { left: 0, width: 100 };
  const left = Math.max(0, Math.min(99.5, (100 * (span.from - turn.from)) / length));
  const width = (100 * ((span.until ?? turn.until) - span.from)) / length;
  return { left, width: Math.max(0.5, Math.min(100 - left, width)) };
}
