import type { Used } from "@tapedeck/client";
import { dollars, short } from "../format";

/** What the chart can show. */
export const measures = ["tokens", "cost", "runs", "failed"] as const;
export type Measure = (typeof measures)[number];

export const measureLabels: Record<Measure, string> = {
  tokens: "Tokens",
  cost: "Cost",
  runs: "Runs",
  failed: "Failed runs",
};

export function amountOf(u: Used, measure: Measure): number {
  if (measure === "cost") return u.cost_usd ?? 0;
  if (measure === "runs") return u.runs;
  return measure === "failed" ? u.runs_failed : u.total;
}

export function amountText(n: number, measure: Measure): string {
  return measure === "cost" ? dollars(n) : short(n);
}

const dayMs = 86_400_000;

/** The day in UTC of a time. */
export const utcDay = (ms: number) => new Date(ms).toISOString().slice(0, 10);

/** The first of so many days that end today; undefined for all days. */
export function firstDay(days: number | undefined, now: number): string | undefined {
  return days === undefined ? undefined : utcDay(now - (days - 1) * dayMs);
}

/** A longer time has only the days on which something was used. */
const maxDays = 400;

/** All days from the first to the last one, also those without usage. */
export function withEmptyDays<T extends { day: string }>(
  days: T[],
  from?: string,
  to?: string,
): (T | { day: string })[] {
  const ends = [from ?? days[0]?.day ?? "", to ?? days.at(-1)?.day ?? ""];
  if (!ends.every((d) => /^\d{4}-\d\d-\d\d$/.test(d))) return days; // browsers read other forms each in their way
  const [first = 0, last = 0] = ends.map((d) => Date.parse(d));
  const n = Math.round((last - first) / dayMs) + 1;
  if (!(n >= 1 && n <= maxDays)) return days;
  const byDay = new Map(days.map((d) => [d.day, d]));
  return Array.from({ length: n }, (_, i) => {
    const day = utcDay(first + i * dayMs);
    return byDay.get(day) ?? { day };
  });
}
