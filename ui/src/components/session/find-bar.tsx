import { maxHits } from "@tapedeck/client/player";
import { useEffect, useRef } from "react";
import { type Find, findField } from "@/hooks/find";
import { plural } from "../format";
import { ErrorBox, field, IconButton, Spinner } from "../ui";

/** The search field of the session. */
export function FindBar({ find }: { find: Find }) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  const onKey = (e: React.KeyboardEvent) => {
    if (e.key === "Escape") find.stop();
    else if (e.key === "Enter" && !e.nativeEvent.isComposing) find.go(e.shiftKey ? -1 : 1);
    else return;
    e.preventDefault();
    e.stopPropagation();
  };
  return (
    <search aria-label="Find in the session" className="border-b border-line bg-panel px-4 py-1.5">
      <div className="flex items-center gap-2">
        <input
          ref={input}
          id={findField}
          type="search"
          aria-label="Find"
          placeholder="Find in this session"
          className={`${field} w-72 min-w-0 shrink`}
          value={find.q}
          maxLength={500}
          onChange={(e) => find.setQ(e.target.value)}
          onKeyDown={onKey}
        />
        <IconButton
          label="Previous"
          keys="Shift+Enter"
          icon="up"
          onClick={() => find.go(-1)}
          disabled={!find.hits[0]}
        />
        <IconButton label="Next" keys="Enter" icon="down" onClick={() => find.go(1)} disabled={!find.hits[0]} />
        <span role="status" className="text-[13px] whitespace-nowrap text-muted tabular-nums">
          {statusText(find)}
        </span>
        {find.busy && <Spinner />}
        <IconButton className="ml-auto" label="Close search" keys="Esc" icon="close" onClick={find.stop} />
      </div>
      {find.error !== undefined && find.error !== null && (
        <div className="mt-1">
          <ErrorBox error={find.error} />
        </div>
      )}
    </search>
  );
}

function statusText({ q, hits, at, more, busy, error }: Find): string {
  if (!q.trim() || error) return "";
  if (hits.length === 0) return busy ? "" : "No results";
  const all = more ? `the ${maxHits.toLocaleString("en")} best results` : hits.length.toLocaleString("en");
  return at < 0 ? plural(hits.length, "result") : `${(at + 1).toLocaleString("en")} of ${all}`;
}
