import type { CallOptions, Summary } from "@tapedeck/client";
import { api } from "@/client";

/** The totals of a side, including its inherited events. */
export interface Totals {
  status: string;
  tools: number;
  failed: number;
  tokens: number;
  cost?: number;
  durationMs: number;
}

/** At most this many ancestors are counted. */
const maxAncestors = 20;

/** The totals of a session up to an offset. A summary covers only the session's own events, so its ancestors' are added. */
export async function totalsOf(id: string, at: number, o?: CallOptions): Promise<Totals> {
  const own = await api.summary(id, { at, ...o });
  let sum = totalsFrom(own);
  let inherited = own.inherited_events > 0;
  for (let child = id, depth = 0; inherited && depth < maxAncestors; depth++) {
    const entry = await api.session(child, o);
    if (!entry.parent) break;
    const above = await api.summary(entry.parent, { at: Math.min(at, entry.fork_at ?? at), ...o });
    sum = addTotals(sum, totalsFrom(above));
    inherited = above.inherited_events > 0;
    child = entry.parent;
  }
  return sum;
}

function totalsFrom(s: Summary): Totals {
  const count = (f: (t: Summary["tools"][number]) => number) => s.tools.reduce((n, t) => n + f(t), 0);
  return {
    status: s.status,
    tools: count((t) => t.count),
    failed: count((t) => t.failed),
    tokens: s.tokens.total,
    cost: s.cost_usd,
    durationMs: s.duration_ms,
  };
}

function addTotals(a: Totals, b: Totals): Totals {
  return {
    status: a.status,
    tools: a.tools + b.tools,
    failed: a.failed + b.failed,
    tokens: a.tokens + b.tokens,
    cost: a.cost === undefined && b.cost === undefined ? undefined : (a.cost ?? 0) + (b.cost ?? 0),
    durationMs: a.durationMs + b.durationMs,
  };
}
