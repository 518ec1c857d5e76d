import type { ImportPreview, LineError, PreviewedSession } from "@tapedeck/client";
import { date, plural, timeOfDay } from "./format";

/** The preview of an import. */
export function PreviewTable({ preview: p }: { preview: ImportPreview }) {
  return (
    <section aria-label="Import preview" className="rounded-md border border-line bg-panel">
      <p role="status" className="border-b border-line px-3 py-2 text-[13px]">
        <span className="font-medium">{plural(p.total, "session")}</span>
        <span className="text-muted">
          {" "}
          with {plural(p.events, "event")} of {plural(p.lines, "line")}, read as {p.format}
        </span>
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard */}
      <div className="max-h-96 overflow-auto" tabIndex={0}>
        <table className="w-full text-left text-[13px]">
          <thead className="text-xs text-muted">
            <tr>
              {["Title", "Events", "Threads", "Time", "ID"].map((h) => (
                <th key={h} scope="col" className="px-3 py-1.5 font-medium">
                  {h}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {p.sessions.map((s, i) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the sessions may have no id
              <PreviewRow key={i} session={s} />
            ))}
          </tbody>
        </table>
        {p.total > p.sessions.length && (
          <p className="px-3 py-2 text-[13px] text-muted">… and {p.total - p.sessions.length} more</p>
        )}
      </div>
    </section>
  );
}

function PreviewRow({ session: s }: { session: PreviewedSession }) {
  return (
    <tr className="border-t border-line align-top">
      <td className="max-w-72 px-3 py-1.5 [overflow-wrap:anywhere]">
        {s.title || <span className="text-muted">(no title)</span>}
      </td>
      <td className="px-3 py-1.5 tabular-nums">{s.events.toLocaleString("en")}</td>
      <td className="max-w-48 px-3 py-1.5 [overflow-wrap:anywhere]">{threadsOf(s)}</td>
      <td className="px-3 py-1.5 whitespace-nowrap tabular-nums">{whenOf(s)}</td>
      <td className="max-w-48 px-3 py-1.5 [overflow-wrap:anywhere]">
        {s.id && !s.id_taken ? <span className="font-mono text-xs">{s.id}</span> : "new ID"}
        {s.id_taken && (
          <span className="block text-xs text-muted">
            <span className="font-mono">{s.id}</span> is already in use
          </span>
        )}
      </td>
    </tr>
  );
}

function threadsOf({ threads = [] }: PreviewedSession): string {
  if (threads.length < 4) return threads.join(", ");
  return `${threads.slice(0, 2).join(", ")} and ${threads.length >= 20 ? "more" : `${threads.length - 2} more`}`;
}

export function whenOf({ first_at, last_at }: PreviewedSession): string {
  if (!first_at || !last_at) return "now";
  const [from, to] = [new Date(first_at), new Date(last_at)];
  if (date(from) !== date(to)) return `${date(from)} – ${date(to)}`;
  const [begun, ended] = [timeOfDay(first_at), timeOfDay(last_at)];
  return `${date(from)}, ${begun}${begun === ended ? "" : ` – ${ended}`}`;
}

const maxLines = 50;

/** The skipped lines of a file, with the reasons. */
export function SkippedLines({ lines = [] }: { lines?: LineError[] }) {
  if (lines.length === 0) return null;
  return (
    <details className="text-[13px]" open={lines.length <= 5}>
      <summary className="cursor-pointer text-warn">{plural(lines.length, "line")} skipped</summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard */}
      <ul className="mt-1 max-h-60 overflow-auto text-muted" tabIndex={0}>
        {lines.slice(0, maxLines).map((l, i) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: one line may have several entries
          <li key={i} className="[overflow-wrap:anywhere]">
            Line {l.line}: {l.reason}
          </li>
        ))}
        {lines.length > maxLines && <li>… and {lines.length - maxLines} more</li>}
      </ul>
    </details>
  );
}
