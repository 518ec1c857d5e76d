import { type FormEvent, useState } from "react";
import { type SavedFilter, sameFilter, useSavedFilters } from "@/hooks/saved-filters";
import type { ListSearch } from "@/router/search";
import { Button, Dialog, field, IconButton } from "./ui";

interface Props {
  filter: ListSearch;
  onChange: (f: ListSearch) => void;
}

/** The filters that this browser has saved, each with its name. */
export function SavedFilters({ filter, onChange }: Props) {
  const [saved, save] = useSavedFilters();
  const [naming, setNaming] = useState(false);
  const any = Object.values(filter).some(Boolean);
  const known = saved.some((f) => sameFilter(f.search, filter));
  if (saved.length === 0 && !any) return null;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for form fields
    <div role="group" aria-label="Saved filters" className="flex flex-wrap items-center gap-1.5">
      {saved.map((f) => {
        const on = sameFilter(f.search, filter);
        return (
          <span key={f.name} className={`inline-flex items-center rounded-md ${on ? "bg-accent-soft" : "bg-raised"}`}>
            <button
              type="button"
              aria-pressed={on}
              onClick={() => onChange(on ? {} : f.search)}
              className="h-8 max-w-48 truncate pl-2.5 text-[13px] pointer-coarse:h-11 max-sm:h-11"
            >
              {f.name}
            </button>
            <IconButton
              label={`Forget ${f.name}`}
              icon="close"
              className="max-sm:size-11"
              onClick={() => save(saved.filter((x) => x !== f))}
            />
          </span>
        );
      })}
      {any && !known && (
        <Button look="ghost" icon="plus" className="max-sm:min-h-11" onClick={() => setNaming(true)}>
          Save these filters
        </Button>
      )}
      {naming && (
        <NameDialog
          taken={saved.map((f) => f.name)}
          onClose={() => setNaming(false)}
          onName={(name) => {
            save([...saved.filter((f) => f.name !== name), { name, search: filter } satisfies SavedFilter]);
            setNaming(false);
          }}
        />
      )}
    </div>
  );
}

function NameDialog(p: { taken: string[]; onClose: () => void; onName: (name: string) => void }) {
  const [name, setName] = useState("");
  const given = name.trim();
  const submit = (e: FormEvent) => {
    e.preventDefault();
    if (given) p.onName(given);
  };
  return (
    <Dialog title="Save these filters" onClose={p.onClose}>
      <form onSubmit={submit} className="flex flex-col gap-3">
        <label className="flex flex-col gap-1 text-[13px]">
          Name
          <input className={field} maxLength={60} value={name} onChange={(e) => setName(e.target.value)} />
        </label>
        <p className="text-[13px] text-muted">
          {p.taken.includes(given) ? "It replaces the filters that have this name. " : ""}
          Only this browser has them.
        </p>
        <div className="flex justify-end gap-2">
          <Button onClick={p.onClose}>Cancel</Button>
          <Button type="submit" look="primary" disabled={!given}>
            Save
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
