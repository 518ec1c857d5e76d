import type { SessionInfo } from "@tapedeck/client";
import { date, dollars, duration, plural, short, timeOfDay } from "@/components/format";
import { StatusChip } from "@/components/status";
import { IconButton } from "@/components/ui";
import { toggleTheme, useTheme } from "@/hooks/theme";
import type { About } from "./tape";

interface Props {
  about: About;
  info: SessionInfo;
  atEnd: boolean;
  onHelp: () => void;
}

/** The title, time and range of the recording, and its totals. */
export function Header({ about, info, atEnd, onHelp }: Props) {
  const theme = useTheme();
  const { axis, recording_ms, tokens, cost_usd } = about.summary;
  return (
    <header className="flex min-h-12 flex-wrap items-center gap-x-3 gap-y-1 border-b border-line bg-panel px-4 py-1.5">
      <div className="min-w-0">
        <h1 dir="auto" className="truncate font-semibold">
          {info.title || about.session.id}
        </h1>
        <p className="truncate text-xs text-muted">
          <span className="font-mono">{about.session.id}</span>
          {info.agent && ` · ${info.agent}`} · {rangeOf(about)}, exported {whenOf(about.exported_at)}
        </p>
      </div>
      <span className="rounded-full bg-accent-soft px-2 py-px text-xs font-medium">Recording</span>
      {about.redacted && (
        <span
          className="rounded-full bg-warn-soft px-2 py-px text-xs font-medium text-warn"
          title="Sensitive data was redacted automatically. Some may remain."
        >
          Redacted
        </span>
      )}
      <StatusChip status={info.status} />
      {!atEnd && <span className="text-xs text-muted">at this moment</span>}
      <div className="ml-auto flex items-center gap-1 text-[13px] text-muted tabular-nums">
        {axis === "time" && (
          <span className="mr-2" title="Length of the recording: without the time between runs">
            {duration(recording_ms)}
          </span>
        )}
        {tokens.total > 0 && (
          <span className="mr-2" title="Total tokens and cost">
            {short(tokens.total)} tokens
            {cost_usd === undefined ? "" : ` · ${dollars(cost_usd)}`}
          </span>
        )}
        <IconButton
          icon={theme === "dark" ? "sun" : "moon"}
          label={theme === "dark" ? "Light theme" : "Dark theme"}
          onClick={toggleTheme}
        />
        <IconButton icon="help" label="Keyboard shortcuts" keys="?" onClick={onHelp} />
      </div>
    </header>
  );
}

export function rangeOf({ from, to, view }: About): string {
  if (view === "effective") return `active events out of ${(to - from).toLocaleString("en")}`;
  return to - from > 1 ? `events ${from} to ${to - 1}` : plural(to - from, "event");
}

function whenOf(at: string): string {
  const time = new Date(at);
  return Number.isNaN(time.getTime()) ? at : `${date(time)}, ${timeOfDay(at)}`;
}
