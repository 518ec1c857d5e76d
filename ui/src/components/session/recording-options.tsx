import type { ExportRequest } from "@tapedeck/client";
import { field } from "../ui";

/** How a recording opens. */
export interface Opening {
  poster: "none" | "here" | "end";
  start: "begin" | "here";
  theme: "" | "light" | "dark";
}

export const plainOpening: Opening = { poster: "none", start: "begin", theme: "" };

/** The members of the request. The moment "here" is the playhead. */
export function openingOf(o: Opening, at: number, end: number): Pick<ExportRequest, "start" | "poster" | "theme"> {
  const poster = o.poster === "none" ? undefined : o.poster === "end" ? end : Math.min(at, end);
  const start = o.start === "here" ? Math.min(at, end) : 0;
  return {
    ...(poster === undefined ? (o.start === "here" ? { start } : {}) : { poster, start }),
    ...(o.theme ? { theme: o.theme } : {}),
  };
}

interface Props {
  value: Opening;
  /** The playhead. */
  at: number;
  onChange: (o: Opening) => void;
}

/** What a recording shows first, from where it plays, and its theme. */
export function RecordingOptions({ value, at, onChange }: Props) {
  const set = (changed: Partial<Opening>) => onChange({ ...value, ...changed });
  return (
    <fieldset className="flex flex-wrap gap-x-3 gap-y-2">
      <legend className="mb-1 text-muted">The recording</legend>
      <Choice
        label="shows first"
        value={value.poster}
        onChange={(poster) => set({ poster })}
        options={[
          ["none", value.start === "here" ? `this moment (${at})` : "its end"],
          ["here", `this moment (${at}) with a play button`],
          ["end", "its end with a play button"],
        ]}
      />
      <Choice
        label="plays from"
        value={value.start}
        onChange={(start) => set({ start })}
        options={[
          ["begin", "its beginning"],
          ["here", `this moment (${at})`],
        ]}
      />
      <Choice
        label="has the theme"
        value={value.theme}
        onChange={(theme) => set({ theme })}
        options={[
          ["", "of its reader"],
          ["light", "light"],
          ["dark", "dark"],
        ]}
      />
    </fieldset>
  );
}

function Choice<T extends string>(p: {
  label: string;
  value: T;
  options: [value: T, name: string][];
  onChange: (v: T) => void;
}) {
  return (
    <label className="flex min-w-32 flex-1 flex-col gap-1">
      <span className="text-muted">{p.label}</span>
      <select className={field} value={p.value} onChange={(e) => p.onChange(e.target.value as T)}>
        {p.options.map(([value, name]) => (
          <option key={value} value={value}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
