import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api } from "@/client";
import { useSettled } from "@/hooks/tick";
import type { ListSearch } from "@/router/search";
import { listStatuses, statusLabel } from "./status";
import { Button, field, IconButton } from "./ui";

interface Props {
  filter: ListSearch;
  onChange: (f: ListSearch) => void;
}

export function SessionFilters({ filter, onChange }: Props) {
  const agents = useQuery({ queryKey: ["agents"], queryFn: ({ signal }) => api.agents({ signal }), staleTime: 60_000 });
  const names = new Set((agents.data ?? []).map((a) => a.name));
  if (filter.agent) names.add(filter.agent);
  const set = (f: Partial<ListSearch>) => onChange({ ...filter, ...f });
  const any = Object.values(filter).some(Boolean);
  return (
    <search aria-label="Filter sessions">
      <form
        onSubmit={(e) => e.preventDefault()}
        className="flex flex-wrap items-center gap-2 border-b border-line bg-panel px-4 py-2"
      >
        <TextFilter value={filter.q ?? ""} onChange={(q) => set({ q: q || undefined })} />
        <select
          aria-label="Status"
          className={field}
          value={filter.status ?? ""}
          onChange={(e) => set({ status: e.target.value || undefined })}
        >
          <option value="">Any status</option>
          {listStatuses.map((s) => (
            <option key={s} value={s}>
              {statusLabel(s)}
            </option>
          ))}
        </select>
        <select
          aria-label="Agent"
          className={field}
          value={filter.agent ?? ""}
          onChange={(e) => set({ agent: e.target.value || undefined })}
        >
          <option value="">Any agent</option>
          {[...names].map((n) => (
            <option key={n}>{n}</option>
          ))}
        </select>
        <select
          aria-label="Show"
          className={field}
          value={filter.show ?? ""}
          onChange={(e) => set({ show: (e.target.value || undefined) as ListSearch["show"] })}
        >
          <option value="">Not archived</option>
          <option value="starred">Starred</option>
          <option value="archived">Archived</option>
        </select>
        <Day name="From" value={filter.from} onChange={(from) => set({ from })} />
        <Day name="Before" value={filter.to} onChange={(to) => set({ to })} />
        {filter.tag && (
          <span className="inline-flex items-center rounded-md bg-raised pl-2 text-[13px]">
            Tag {filter.tag}
            <IconButton label="All tags" icon="close" onClick={() => set({ tag: undefined })} />
          </span>
        )}
        {any && (
          <Button look="ghost" icon="close" onClick={() => onChange({})}>
            Clear
          </Button>
        )}
      </form>
    </search>
  );
}

function Day({ name, value, onChange }: { name: string; value?: string; onChange: (day?: string) => void }) {
  return (
    <label className="flex items-center gap-1.5 text-[13px] text-muted">
      {name}
      <input
        type="date"
        className={field}
        value={value ?? ""}
        onChange={(e) => onChange(e.target.value || undefined)}
      />
    </label>
  );
}

/** The text filter is applied when typing pauses. */
function TextFilter({ value, onChange }: { value: string; onChange: (q: string) => void }) {
  const [text, setText] = useState(value);
  const [applied, setApplied] = useState(value);
  if (value !== applied) {
    setApplied(value); // the URL has changed: the back button, or Clear
    setText(value);
  }
  const settled = useSettled(text, 250);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only typed text is applied
  useEffect(() => {
    if (settled === text && settled !== value) {
      setApplied(settled);
      onChange(settled);
    }
  }, [settled]);
  return (
    <input
      id="search"
      type="search"
      placeholder="Search titles, IDs and text"
      aria-label="Search"
      className={`${field} w-72 max-w-full`}
      value={text}
      onChange={(e) => setText(e.target.value)}
    />
  );
}
