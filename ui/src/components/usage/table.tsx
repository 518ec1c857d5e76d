import type { Used } from "@tapedeck/client";
import { visible } from "../conversation/action";
import { dollars, plural, short } from "../format";

export interface UsageLine {
  key: string;
  name: string;
  used: Used;
  /** Where the name leads. */
  onOpen?: () => void;
}

interface Props {
  title: string;
  /** What a line is: the head of its column. */
  what: string;
  lines: UsageLine[];
}

/** The limit of shown lines. */
const maxLines = 100;
/** The heads of the columns, and what only screen readers need to tell them apart. */
const heads = [
  ["Runs", ""],
  ["Failed", "runs"],
  ["Tool calls", ""],
  ["Failed", "tool calls"],
  ["Input", ""],
  ["Output", ""],
  ["Cost", ""],
] as const;
const number = "px-2 py-1.5 text-right tabular-nums";

/** The figures of days, agents or models. */
export function UsageTable({ title, what, lines }: Props) {
  return (
    <section className="flex flex-col gap-1.5">
      <h2 className="font-semibold">{title}</h2>
      <section
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard
        tabIndex={0}
        aria-label={title}
        className="overflow-x-auto rounded-md border border-line bg-panel"
      >
        <table className="w-full text-[13px]">
          <thead>
            <tr className="border-b border-line text-xs text-muted">
              <th scope="col" className="px-3 py-1.5 text-left font-medium">
                {what}
              </th>
              {heads.map(([head, rest]) => (
                <th key={head + rest} scope="col" className={`${number} font-medium`}>
                  {head}
                  {rest && <span className="sr-only"> {rest}</span>}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {lines.slice(0, maxLines).map(({ key, name, used: u, onOpen }) => (
              <tr key={key} className="border-b border-line last:border-0">
                <th scope="row" className="max-w-64 min-w-28 truncate px-3 py-1.5 text-left font-medium" title={name}>
                  {onOpen ? (
                    <button type="button" className="min-h-6 text-accent hover:underline" onClick={onOpen}>
                      {visible(name)}
                    </button>
                  ) : (
                    visible(name)
                  )}
                </th>
                <td className={number}>{u.runs.toLocaleString("en")}</td>
                <Failed n={u.runs_failed} />
                <td className={number}>{u.tool_calls.toLocaleString("en")}</td>
                <Failed n={u.tools_failed} />
                <td className={number} title={u.input.toLocaleString("en")}>
                  {short(u.input)}
                </td>
                <td className={number} title={u.output.toLocaleString("en")}>
                  {short(u.output)}
                </td>
                <td className={number}>{u.cost_usd === undefined ? "unknown" : dollars(u.cost_usd)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {lines.length > maxLines && (
        <p className="text-[13px] text-muted">Not shown: {plural(lines.length - maxLines, "more line")}</p>
      )}
    </section>
  );
}

function Failed({ n }: { n: number }) {
  return <td className={`${number} ${n > 0 ? "font-medium text-bad" : "text-muted"}`}>{n.toLocaleString("en")}</td>;
}
