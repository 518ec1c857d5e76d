import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api } from "@/client";
import { useMedia } from "@/hooks/media";
import type { InOrder } from "@/hooks/sessions";
import { useSettled } from "@/hooks/tick";
import type { ListSearch } from "@/router/search";
import { SavedFilters } from "./saved-filters";
import { sorts, usual } from "./session-columns";
import { listStatuses, statusLabel } from "./status";
import { Button, field, IconButton } from "./ui";

interface Props {
  filter: ListSearch;
  onChange: (f: ListSearch) => void;
  /** The order; absent if the view has one of its own. */
  order?: InOrder;
  onOrder: (o: InOrder) => void;
}

export function SessionFilters({ filter, onChange, order, onOrder }: Props) {
  const narrow = useMedia("(max-width: 639px)");
  const [opened, setOpened] = useState(false);
  const all = !narrow || opened;
  const set = (f: Partial<ListSearch>) => onChange({ ...filter, ...f });
  const count = Object.entries(filter).filter(([name, v]) => name !== "q" && v).length;
  const any = Object.values(filter).some(Boolean);
  return (
    <search
      aria-label="Filter sessions"
      className="flex flex-wrap items-center gap-2 border-b border-line bg-panel px-4 py-2"
    >
      <form onSubmit={(e) => e.preventDefault()} className="contents">
        <TextFilter value={filter.q ?? ""} onChange={(q) => set({ q: q || undefined })} />
        {narrow && (
          <Button aria-expanded={opened} onClick={() => setOpened((o) => !o)} className="min-h-11">
            Filters{count > 0 && ` · ${count}`}
          </Button>
        )}
        {all && <Choices filter={filter} set={set} />}
        {narrow && opened && order && <SortField order={order} onOrder={onOrder} />}
        {any && (
          <Button look="ghost" icon="close" className="max-sm:min-h-11" onClick={() => onChange({})}>
            Clear
          </Button>
        )}
      </form>
      {all && <SavedFilters filter={filter} onChange={onChange} />}
    </search>
  );
}

/** The order of the list. */
export function SortField({ order, onOrder }: { order: InOrder; onOrder: (o: InOrder) => void }) {
  const up = order.order === "asc";
  return (
    <span className="inline-flex items-center gap-1">
      <select
        aria-label="Sort"
        className={`${field} max-sm:min-h-11`}
        value={order.sort}
        onChange={(e) => {
          const sort = e.target.value as InOrder["sort"];
          onOrder({ sort, order: usual(sort) });
        }}
      >
        {sorts.map((s) => (
          <option key={s.sort} value={s.sort}>
            {s.label}
          </option>
        ))}
      </select>
      <IconButton
        label={up ? "Ascending: turn round" : "Descending: turn round"}
        icon={up ? "up" : "down"}
        className="max-sm:size-11"
        onClick={() => onOrder({ ...order, order: up ? "desc" : "asc" })}
      />
    </span>
  );
}

function Choices({ filter, set }: { filter: ListSearch; set: (f: Partial<ListSearch>) => void }) {
  const agents = useQuery({ queryKey: ["agents"], queryFn: ({ signal }) => api.agents({ signal }), staleTime: 60_000 });
  const names = new Set((agents.data ?? []).map((a) => a.name));
  if (filter.agent) names.add(filter.agent);
  return (
    <>
      <select
        aria-label="Status"
        className={`${field} max-sm:min-h-11`}
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
        className={`${field} max-sm:min-h-11`}
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
        className={`${field} max-sm:min-h-11`}
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
    </>
  );
}

function Day({ name, value, onChange }: { name: string; value?: string; onChange: (day?: string) => void }) {
  return (
    <label className="flex items-center gap-1.5 text-[13px] text-muted">
      {name}
      <input
        type="date"
        className={`${field} max-sm:min-h-11`}
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
      className={`${field} w-72 max-w-full max-sm:min-h-11 max-sm:w-auto max-sm:min-w-0 max-sm:flex-1 max-sm:basis-3/5`}
      value={text}
      onChange={(e) => setText(e.target.value)}
    />
  );
}
