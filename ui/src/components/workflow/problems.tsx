import type { Problem } from "@tapedeck/client";
import { visible } from "../conversation/action";
import { brief, plural } from "../format";

interface Props {
  title: string;
  problems: readonly Problem[];
  /** The lines of the diagram. */
  lines: string[];
  /** They only warn. */
  mild?: boolean;
}

/** What is wrong with a diagram: where, and what to do. */
export function Problems({ title, problems, lines, mild }: Props) {
  const look = mild ? "border-warn/50 bg-warn-soft" : "border-bad/40 bg-bad-soft";
  return (
    <section role={mild ? undefined : "alert"} aria-label={title} className={`rounded-md border ${look} text-[13px]`}>
      <h3 className={`px-3 pt-2 font-semibold ${mild ? "text-warn" : "text-bad"}`}>
        {title} <span className="font-normal">({plural(problems.length, "place")})</span>
      </h3>
      <ol className="flex flex-col gap-2 px-3 py-2">
        {problems.map((p, i) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: two problems may have the same place
          <li key={i} className="[overflow-wrap:anywhere]">
            <p>
              <span className="text-muted">
                {p.line ? `Line ${p.line}` : "The file"}
                {p.element && (
                  <>
                    {", "}
                    <span className="font-mono text-xs">{visible(p.element)}</span>
                    {p.name && ` “${brief(visible(p.name), 60)}”`}
                  </>
                )}
                :{" "}
              </span>
              <span className="font-medium">{visible(p.message)}</span>
            </p>
            {p.hint && <p className="text-muted">{visible(p.hint)}</p>}
            {p.line && lines[p.line - 1]?.trim() && (
              <code className="mt-1 block truncate rounded bg-bg px-2 py-1 font-mono text-xs text-muted">
                {brief(visible(lines[p.line - 1] ?? ""), 160)}
              </code>
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}
