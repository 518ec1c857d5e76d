import type { Envelope as Event, Json, Message, Run, Snapshot, ToolCall } from "@tapedeck/client";

/** A call of a model, as far as the log shows it: what it wrote between two inputs. */
export interface ModelCall {
  key: string;
  thread: string;
  invocation: string | undefined;
  /** The number of the call in its run, from 1. */
  n: number;
  /** What the model was sent is the context before this event: the first one that it wrote. */
  first: number;
  /** When the input was complete: the run began, or the last tool had answered. */
  sent: number;
  /** When the first of the answer came. */
  began: number;
  ended: number | undefined;
  usage?: CallUsage;
}

export interface CallUsage {
  model: string;
  input: number;
  output: number;
  cached: number;
  cost?: number;
}

type Parts = Pick<Snapshot, "messages" | "tool_calls" | "runs">;
type Output = { kind: "text"; item: Message } | { kind: "tool"; item: ToolCall };

const wrote = (m: Message) => m.role === "assistant" || m.role === "reasoning";
const ms = (at: string | undefined) => (at === undefined ? undefined : Date.parse(at));

/** The calls of models in one run, oldest first. */
export function callsOf(run: Run, { messages, tool_calls }: Omit<Parts, "runs">): ModelCall[] {
  const of = (i: { invocation?: string; thread: string }) => i.thread === run.thread && i.invocation === run.invocation;
  const outputs: Output[] = [
    ...messages.filter((m) => wrote(m) && of(m)).map((item): Output => ({ kind: "text", item })),
    ...tool_calls.filter(of).map((item): Output => ({ kind: "tool", item })),
  ].sort((a, b) => a.item.offset - b.item.offset);
  const calls: ModelCall[] = [];
  let tools: ToolCall[] = []; // of the call so far
  let turn: number | undefined;
  let current: ModelCall | undefined;
  for (const { kind, item } of outputs) {
    if (!current || isNext(item, turn, tools)) {
      const answers = tools.flatMap((t) => ms(t.ended_at) ?? []);
      current = {
        key: `c${item.offset}`,
        thread: run.thread,
        invocation: run.invocation,
        n: calls.length + 1,
        first: item.offset,
        sent: Math.max(calls.length === 0 ? Date.parse(run.started_at) : current!.began, ...answers),
        began: Date.parse(item.started_at),
        ended: undefined,
      };
      calls.push(current);
      tools = [];
    }
    turn = item.turn ?? turn;
    // A call of a tool is written when the tool begins; what the tool does is not the model's time.
    const end = kind === "tool" ? Date.parse(item.started_at) : ms(item.ended_at);
    if (kind === "tool") tools.push(item);
    if (end !== undefined) current.ended = Math.max(current.ended ?? end, end);
  }
  for (const c of calls) c.sent = Math.min(c.sent, c.began); // clocks may go backwards
  return calls;
}

/** Whether an item begins the next call: it has the number of another one, or a tool of this one has answered. */
function isNext(item: Message | ToolCall, turn: number | undefined, tools: ToolCall[]): boolean {
  if (item.turn !== undefined && turn !== undefined) return item.turn !== turn;
  return tools.some((t) => t.end_offset !== undefined && t.end_offset < item.offset);
}

const amount = (v: Json | undefined) => (typeof v === "number" && v > 0 ? v : 0);

/** Gives each call the usage that was reported for it: after its beginning, and before the next call of its run. */
export function withUsage(calls: ModelCall[], reports: Event[]): ModelCall[] {
  const byRun = new Map<string, Event[]>();
  for (const r of reports) {
    const key = r.invocation ?? "";
    byRun.set(key, [...(byRun.get(key) ?? []), r]);
  }
  return calls.map((c, i) => {
    const next = calls[i + 1]?.first ?? Number.POSITIVE_INFINITY;
    const report = byRun.get(c.invocation ?? "")?.findLast((r) => r.offset > c.first && r.offset < next);
    return report ? { ...c, usage: usageOf(report) } : c;
  });
}

function usageOf({ data }: Event): CallUsage {
  const d = (data ?? {}) as Record<string, Json>;
  return {
    model: typeof d.model === "string" ? d.model : "",
    input: amount(d.inputTokens),
    output: amount(d.outputTokens),
    cached: amount(d.cachedInputTokens),
    ...(typeof d.costUsd === "number" && { cost: d.costUsd }),
  };
}
