import { useMutation } from "@tanstack/react-query";
import type { ExportRequest, RedactionPreview } from "@tapedeck/client";
import { useState } from "react";
import { api } from "@/client";
import { announce } from "@/hooks/notices";
import { plural } from "../format";
import { Button, Dialog, ErrorBox, field } from "../ui";
import { openingOf, plainOpening, RecordingOptions } from "./recording-options";

type Format = NonNullable<ExportRequest["format"]>;

const formats: [format: Format, name: string, ending: string][] = [
  ["ndjson", "NDJSON: every event; can be imported again", "ndjson"],
  ["html", "HTML: a recording that plays offline in a browser", "html"],
  ["json", "JSON: the session and its events in one document", "json"],
  ["markdown", "Markdown: the conversation as a document", "md"],
  ["csv", "CSV: one row per event", "csv"],
  ["asciicast", "asciicast: a terminal recording", "cast"],
];

interface Props {
  id: string;
  /** The playhead; absent for live. */
  at?: number;
  head: number;
  /** Offer a recording first. */
  recording?: boolean;
  onClose: () => void;
}

export function ExportDialog({ id, at, head, recording, onClose }: Props) {
  const [format, setFormat] = useState<Format>(recording ? "html" : "ndjson");
  const [effective, setEffective] = useState(false);
  const [rules, setRules] = useState<Rules>({ secrets: true, pii: false, keys: "", patterns: "" });
  const [here, setHere] = useState(false);
  const [opening, setOpening] = useState(plainOpening);
  const end = here && at !== undefined ? at : head;
  const body = {
    format,
    ...(format === "html" ? openingOf(opening, at ?? head, end) : {}),
    view: effective ? "effective" : "all",
    ...(here && at !== undefined ? { at } : {}),
    redact: redactionOf(rules),
  } satisfies ExportRequest;
  const redact = Object.values(body.redact).some((list) => list.length > 0);
  const previewKey = JSON.stringify(body);
  const preview = useMutation({
    mutationFn: (_key: string) => api.exportPreview(id, body),
  });
  const save = useMutation({
    mutationFn: async (_key: string) => {
      const found = redact ? (await api.exportPreview(id, body)).events : 0;
      return { file: await api.export(id, body), found };
    },
    onSuccess: ({ file, found }) => {
      const name = `${id}.${formats.find(([f]) => f === format)?.[2] ?? "txt"}`;
      download(file, name);
      announce({ text: `Saved as ${name}, where your browser keeps downloads. ${said(redact, found)}` });
      onClose();
    },
  });
  const failed = [preview, save].find((m) => m.isError && m.variables === previewKey);
  return (
    <Dialog title="Export" onClose={onClose}>
      <div className="flex flex-col gap-3 text-[13px]">
        <label className="flex flex-col gap-1">
          <span className="text-muted">Format</span>
          <select className={field} value={format} onChange={(e) => setFormat(e.target.value as Format)}>
            {formats.map(([f, name]) => (
              <option key={f} value={f}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <Check on={effective} set={setEffective}>
          Only active events, without reverted ones
        </Check>
        {at !== undefined && (
          <Check on={here} set={setHere}>
            Only up to the current moment (offset {at})
          </Check>
        )}
        {format === "html" && <RecordingOptions value={opening} at={at ?? head} onChange={setOpening} />}
        <Redaction rules={rules} onChange={setRules} />
        {redact && preview.data && preview.variables === previewKey && <PreviewList preview={preview.data} />}
        {failed && <ErrorBox error={failed.error} />}
        <div className="flex justify-end gap-2">
          {redact && (
            <Button onClick={() => preview.mutate(previewKey)} busy={preview.isPending}>
              Preview redactions
            </Button>
          )}
          <Button look="primary" icon="export" onClick={() => save.mutate(previewKey)} busy={save.isPending}>
            Save file
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

/** Says what was left out, and no more than that. */
function said(redact: boolean, found: number): string {
  if (!redact) return "Nothing was redacted.";
  return found === 0 ? "The rules found nothing to redact." : `${plural(found, "event")} redacted.`;
}

interface Rules {
  secrets: boolean;
  pii: boolean;
  keys: string; // comma-separated
  patterns: string; // one regular expression per line
}

function redactionOf({ secrets, pii, keys, patterns }: Rules) {
  const filled = (list: string[]) => list.map((s) => s.trim()).filter(Boolean);
  return {
    presets: [...(secrets ? ["secrets"] : []), ...(pii ? ["pii"] : [])],
    keys: filled(keys.split(",")),
    patterns: filled(patterns.split("\n")),
  };
}

function Redaction({ rules, onChange }: { rules: Rules; onChange: (r: Rules) => void }) {
  const set = (changed: Partial<Rules>) => onChange({ ...rules, ...changed });
  return (
    <fieldset className="flex flex-col gap-2">
      <legend className="mb-1 text-muted">Redact</legend>
      <p className="text-xs text-muted">
        The rules look for text of known forms. They do not look into pictures and Base64, and ids and names of members
        stay. No rule finds everything: read the file before you share it.
      </p>
      <Check on={rules.secrets} set={(secrets) => set({ secrets })}>
        Likely secrets
      </Check>
      <Check on={rules.pii} set={(pii) => set({ pii })}>
        Email addresses
      </Check>
      <details>
        <summary className="cursor-pointer text-muted hover:text-text">More</summary>
        <div className="mt-2 flex flex-col gap-2">
          <label className="flex flex-col gap-1">
            <span className="text-muted">Redact values of these keys (comma-separated)</span>
            <input
              className={field}
              value={rules.keys}
              onChange={(e) => set({ keys: e.target.value })}
              placeholder="internal_id, customer"
            />
          </label>
          <label className="flex flex-col gap-1">
            <span className="text-muted">Redact matches of these regular expressions (one per line)</span>
            <textarea
              rows={2}
              className={`${field} h-auto py-1 font-mono`}
              value={rules.patterns}
              onChange={(e) => set({ patterns: e.target.value })}
              placeholder="ACME-[0-9]+"
            />
          </label>
        </div>
      </details>
    </fieldset>
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

function PreviewList({ preview }: { preview: RedactionPreview }) {
  if (!preview.events) return <p className="rounded-md bg-raised px-3 py-2">No redactions in this session.</p>;
  return (
    <div className="max-h-60 overflow-auto rounded-md bg-raised px-3 py-2" role="status">
      <p className="font-medium">{plural(preview.events, "event")} would be redacted</p>
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
