import type { SessionEntry } from "@tapedeck/client";
import { dollars, duration, plural, short } from "../format";

/**
 * What the runs of a session have used of its budget: one text for each limit. `over` says that
 * a limit is reached. Time that is still running is counted up to `now`, in milliseconds.
 */
export function budgetOf(
  entry: Pick<SessionEntry, "budget" | "spent">,
  now: number,
): { texts: string[]; over: boolean } {
  const { budget, spent } = entry;
  if (!budget) return { texts: [], over: false };
  const times = (budget.grants ?? 0) + 1;
  const running = spent?.since ? Math.max(0, now - Date.parse(spent.since)) / 1000 : 0;
  const parts: [number, number | undefined, (used: number, limit: number) => string][] = [
    [spent?.tokens ?? 0, budget.tokens, (u, l) => `${short(u)} of ${short(l)} tokens`],
    [spent?.usd ?? 0, budget.usd, (u, l) => `${dollars(u)} of ${dollars(l)}`],
    [spent?.turns ?? 0, budget.turns, (u, l) => `${u} of ${plural(l, "model call")}`],
    [(spent?.seconds ?? 0) + running, budget.seconds, (u, l) => `${duration(u * 1000)} of ${duration(l * 1000)}`],
  ];
  const texts: string[] = [];
  let over = false;
  for (const [used, one, text] of parts) {
    if (!one) continue;
    texts.push(text(used, one * times));
    over ||= used >= one * times;
  }
  return { texts, over };
}
