import { Link } from "@tanstack/react-router";
import type { Connection, SessionEntry, SessionInfo } from "@tapedeck/client";
import { memo } from "react";
import { archived, has, starred, tagsOf } from "@/hooks/labels";
import type { Presence } from "@/hooks/people";
import { dollars, duration, short } from "../format";
import { Icon } from "../icons";
import { Menu, type MenuItem } from "../menu";
import { StatusChip } from "../status";
import { Tag } from "../tag";
import { Button } from "../ui";
import { budgetOf } from "./budget";
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
  onShare: () => void;
  /** What can be done with the session as a whole; none for those who only read it. */
  items: MenuItem[];
  presence: Presence;
  onPeople: () => void;
}

export const SessionHeader = memo(function SessionHeader({
  id,
  info,
  entry,
  head,
  live,
  connection,
  onReconnect,
  onExport,
  onShare,
  items,
  presence,
  onPeople,
}: Props) {
  const summary = useSummary(id, head).data;
  const budget = budgetOf(entry ?? {}, Date.now());
  return (
    <div className="not-zen flex min-h-12 flex-wrap items-center gap-x-3 gap-y-1 border-b border-line bg-panel px-4 py-1.5">
      <div className="min-w-0">
        <h1 className="flex items-center gap-1.5 font-semibold">
          {entry && has(entry, starred) && (
            <span role="img" aria-label="Starred" className="text-warn">
              <Icon name="starred" />
            </span>
          )}
          <span dir="auto" className={`truncate ${info.title ? "" : "text-muted"}`} title={info.title}>
            {info.title || "Untitled session"}
          </span>
        </h1>
        <p className="truncate text-xs text-muted">
          <span className="max-sm:hidden">
            <span className="font-mono">{id}</span>
            {info.agent && " · "}
          </span>
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
                <Icon name="fork" className="size-3" /> {entry.copy ? "copy" : "fork"}
                <span className="max-sm:hidden"> of {entry.parent}</span>
              </Link>
              {" · "}
              <Link to="/compare" search={{ a: entry.parent, b: id }} className="text-accent hover:underline">
                Compare with it
              </Link>
            </>
          )}
          {entry && has(entry, archived) && " · archived"}
          {entry && tagsOf(entry).map((t) => <Tag key={t} name={t} />)}
        </p>
      </div>
      {!isDeleted(connection) && <StatusChip status={info.status} />}
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
        {budget.texts.length > 0 && (
          <span
            title="Used of the budget of the session; beyond it a run asks before it continues"
            className={budget.over ? "text-warn" : ""}
          >
            {budget.texts.join(" · ")}
          </span>
        )}
        <Avatars presence={presence} onOpen={onPeople} />
        <span className="flex items-center">
          <Button look="ghost" icon="share" onClick={onShare} title="S">
            Share
          </Button>
          <Button look="ghost" icon="export" onClick={onExport}>
            Export
          </Button>
          {items.length > 0 && <Menu label="More for this session" items={items} />}
        </span>
      </div>
    </div>
  );
});

const states: Record<Connection["state"], [text: string, className: string]> = {
  connecting: ["Connecting", "text-muted"],
  live: ["Connected, catching up", "text-run"],
  "caught-up": ["Connected, caught up", "text-ok"],
  reconnecting: ["Reconnecting", "text-warn"],
  failed: ["Not connected", "text-bad"],
  ended: ["Ended", "text-muted"],
};

/** Whether the page has a connection, so that an error of the last attempt no longer counts. */
export const isUp = (c: Connection) => c.state === "live" || c.state === "caught-up" || c.state === "ended";

/** Whether the session was deleted while the page showed it. */
export const isDeleted = (c: Connection) => c.reason === "deleted";

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
      {isDeleted(connection) ? "Deleted" : connection.state === "ended" && closed ? "Closed" : text}
      {connection.error && !isUp(connection) && <span className="font-normal">{`: ${connection.error.message}`}</span>}
      {(connection.state === "failed" || connection.state === "reconnecting") && (
        <Button className="h-6" onClick={onReconnect}>
          Reconnect
        </Button>
      )}
    </span>
  );
}
