import type { Usage } from "@tapedeck/client";
import { amountOf, amountText, type Measure, measureLabels, withEmptyDays } from "./figures";

interface Props {
  usage: Usage;
  /** The last day. */
  to: string;
  measure: Measure;
}

/** A bar for each day. The table below it has the same figures, so screen readers get only its name. */
export function UsageChart({ usage, to, measure }: Props) {
  const days = withEmptyDays(usage.days, usage.from, to);
  const amounts = days.map((d) => ("total" in d ? amountOf(d, measure) : 0));
  const most = Math.max(...amounts, 0);
  const label = `${measureLabels[measure]} by day`;
  return (
    <figure className="flex flex-col gap-1">
      <div className="flex justify-between text-xs text-muted tabular-nums">
        <span>{most > 0 ? `at most ${amountText(most, measure)} a day` : "nothing"}</span>
      </div>
      <div role="img" aria-label={label} className="flex h-32 items-end gap-px border-b border-field">
        {days.map((d, i) => {
          const n = amounts[i] ?? 0;
          return (
            <div
              key={d.day}
              title={`${d.day}: ${amountText(n, measure)}`}
              className="flex h-full min-w-0 flex-1 items-end hover:bg-raised"
            >
              <div
                className={`w-full rounded-t-sm ${measure === "failed" ? "bg-bad" : "bg-run"} forced-colors:bg-[CanvasText]`}
                style={{ height: n > 0 && most > 0 ? `max(2px, ${(100 * n) / most}%)` : 0 }}
              />
            </div>
          );
        })}
      </div>
      <figcaption className="flex justify-between text-xs text-muted tabular-nums">
        <span>{days[0]?.day}</span>
        <span>{days.length > 1 && days.at(-1)?.day}</span>
      </figcaption>
    </figure>
  );
}
