import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "@/data/api";
import { plural } from "../format";
import { Button, Dialog, ErrorBox, field } from "../ui";

const formats: [format: string, name: string, ending: string][] = [
  ["ndjson", "NDJSON: every event, nothing lost; can be imported", "ndjson"],
  ["json", "JSON: the session and its events in one document", "json"],
  ["markdown", "Markdown: the conversation, for people", "md"],
  ["csv", "CSV: one line for each event", "csv"],
  ["asciicast", "asciicast: what a terminal showed", "cast"],
];

interface Preview {
  events?: number;
  rules?: { rule: string; count: number; samples?: { offset: number; masked: string }[] }[];
}

export function ExportDialog({ id, at, onClose }: { id: string; at?: number; onClose: () => void }) {
  const [format, setFormat] = useState("ndjson");
  const [effective, setEffective] = useState(false);
  const [redact, setRedact] = useState(true);
  const [here, setHere] = useState(false);
  const body = {
    format,
    view: effective ? "effective" : "all",
    ...(here && at !== undefined ? { at } : {}),
    ...(redact ? { redact: { presets: ["secrets"] } } : {}),
  };
  const preview = useMutation({
    mutationFn: () => api.exportPreview(id, body) as Promise<unknown> as Promise<Preview>,
  });
  const save = useMutation({
    mutationFn: () => api.export(id, body),
    onSuccess: (file) => {
      download(file, `${id}.${formats.find(([f]) => f === format)?.[2] ?? "txt"}`);
      onClose();
    },
  });
  const failed = [preview, save].find((m) => m.isError);
  return (
    <Dialog title="Export" onClose={onClose}>
      <div className="flex flex-col gap-3 text-[13px]">
        <label className="flex flex-col gap-1">
          <span className="text-muted">Format</span>
          <select className={field} value={format} onChange={(e) => setFormat(e.target.value)}>
            {formats.map(([f, name]) => (
              <option key={f} value={f}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <Check on={effective} set={setEffective}>
          Only what is in force, without what was taken back
        </Check>
        {at !== undefined && (
          <Check on={here} set={setHere}>
            Only up to the moment that is shown (offset {at})
          </Check>
        )}
        <Check on={redact} set={setRedact}>
          Leave out what looks like a secret
        </Check>
        {redact && preview.data && <PreviewList preview={preview.data} />}
        {failed && <ErrorBox error={failed.error} />}
        <div className="flex justify-end gap-2">
          {redact && (
            <Button onClick={() => preview.mutate()} busy={preview.isPending}>
              Show what is left out
            </Button>
          )}
          <Button look="primary" icon="export" onClick={() => save.mutate()} busy={save.isPending}>
            Save the file
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

function Check({ on, set, children }: { on: boolean; set: (on: boolean) => void; children: React.ReactNode }) {
  return (
    <label className="flex items-center gap-2">
      <input type="checkbox" checked={on} onChange={(e) => set(e.target.checked)} />
      <span>{children}</span>
    </label>
  );
}

function PreviewList({ preview }: { preview: Preview }) {
  if (!preview.events)
    return <p className="rounded-md bg-raised px-3 py-2">Nothing in this session looks like a secret.</p>;
  return (
    <div className="max-h-60 overflow-auto rounded-md bg-raised px-3 py-2" role="status">
      <p className="font-medium">{plural(preview.events, "event")} would be changed</p>
      <ul>
        {(preview.rules ?? []).map((r) => (
          <li key={r.rule}>
            {r.rule}: {r.count}{" "}
            <span className="font-mono text-xs text-muted">
              {(r.samples ?? []).map((s) => `${s.offset}: ${s.masked}`).join(", ")}
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}

function download(file: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
