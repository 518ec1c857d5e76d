import { Link } from "@tanstack/react-router";
import type { Connection, SessionEntry, SessionInfo } from "@tapedeck/client";
import type { Presence } from "@/hooks/people";
import { dollars, duration, short } from "../format";
import { Icon } from "../icons";
import { StatusChip } from "../status";
import { Button } from "../ui";
import { useSummary } from "./panels";
import { Avatars } from "./people";

interface Props {
  id: string;
  info: SessionInfo;
  entry?: SessionEntry;
  head: number;
  live: boolean;
  connection: Connection;
  onReconnect: () => void;
  onExport: () => void;
  presence: Presence;
  onPeople: () => void;
}

export function SessionHeader({
  id,
  info,
  entry,
  head,
  live,
  connection,
  onReconnect,
  onExport,
  presence,
  onPeople,
}: Props) {
  const summary = useSummary(id, head).data;
  return (
    <div className="not-zen flex min-h-12 flex-wrap items-center gap-x-3 gap-y-1 border-b border-line bg-panel px-4 py-1.5">
      <div className="min-w-0">
        <h1 className="truncate font-semibold">{info.title || id}</h1>
        <p className="truncate text-xs text-muted">
          <span className="font-mono">{id}</span>
          {info.agent && " · "}
          {info.agent === "workflow" && <Icon name="flow" className="size-3" />} {info.agent}
          {entry?.parent && (
            <>
              {" · "}
              <Link
                to="/s/$id"
                params={{ id: entry.parent }}
                search={{ at: entry.fork_at }}
                className="hover:underline"
              >
                <Icon name="fork" className="size-3" /> {entry.copy ? "copy" : "fork"} of {entry.parent}
              </Link>
            </>
          )}
        </p>
      </div>
      <StatusChip status={info.status} />
      {!live && <span className="text-xs text-muted">at this moment</span>}
      <ConnectionChip
        connection={connection}
        closed={entry?.closed ?? info.closed ?? false}
        onReconnect={onReconnect}
      />
      <div className="ml-auto flex items-center gap-3 text-[13px] text-muted tabular-nums">
        {summary && summary.axis === "time" && (
          <span title="Length of the recording: without the time between runs">{duration(summary.recording_ms)}</span>
        )}
        {summary && summary.tokens.total > 0 && (
          <span title="Total tokens and cost">
            {short(summary.tokens.total)} tokens
            {summary.cost_usd === undefined ? "" : ` · ${dollars(summary.cost_usd)}`}
          </span>
        )}
        <Avatars presence={presence} onOpen={onPeople} />
        <Button look="ghost" icon="export" onClick={onExport}>
          Export
        </Button>
      </div>
    </div>
  );
}

const states: Record<Connection["state"], [text: string, className: string]> = {
  connecting: ["Connecting", "text-muted"],
  live: ["Connected, catching up", "text-run"],
  "caught-up": ["Connected, caught up", "text-ok"],
  reconnecting: ["Reconnecting", "text-warn"],
  failed: ["Not connected", "text-bad"],
  ended: ["Ended", "text-muted"],
};

interface ConnectionProps {
  connection: Connection;
  /** The session is closed. */
  closed: boolean;
  onReconnect: () => void;
}

function ConnectionChip({ connection, closed, onReconnect }: ConnectionProps) {
  const [text, colour] = states[connection.state];
  return (
    <span role="status" aria-label="Connection" className={`flex items-center gap-1.5 text-xs font-medium ${colour}`}>
      <Icon name="dot" className={`size-2.5 ${connection.state === "reconnecting" ? "animate-pulse" : ""}`} />
      {connection.state === "ended" && closed ? "Closed" : text}
      {connection.error && <span className="font-normal">{`: ${connection.error.message}`}</span>}
      {(connection.state === "failed" || connection.state === "reconnecting") && (
        <Button className="h-6" onClick={onReconnect}>
          Reconnect
        </Button>
      )}
    </span>
  );
}
