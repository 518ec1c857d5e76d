import { Link } from "@tanstack/react-router";
import type { Imported } from "@tapedeck/client";
import { type DragEvent, useEffect, useState } from "react";
import { plural } from "@/components/format";
import { PreviewTable, SkippedLines } from "@/components/import-preview";
import { Button, ErrorBox, field, Spinner } from "@/components/ui";
import { type Import, useImport } from "@/hooks/import";

const formats: [format: string, name: string][] = [
  ["auto", "Detect automatically"],
  ["ndjson", "Tapedeck NDJSON"],
  ["openai-messages", "OpenAI messages"],
  ["claude-code", "Claude Code session (JSONL)"],
  ["agui", "AG-UI events"],
  ["asciicast", "asciicast (terminal)"],
];

/** Imports sessions from files, after a preview. */
export function ImportPage() {
  const job = useImport();
  const [over, setOver] = useState(false);
  useEffect(() => {
    document.title = "Import · Tapedeck";
  }, []);
  useEffect(keepFilesHere, []);
  const drop = (e: DragEvent) => {
    setOver(false);
    const file = e.dataTransfer.files[0];
    if (file && job.busy?.action !== "import") job.choose(file);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button does the same as a drop
    <div
      className="mx-auto flex max-w-3xl flex-col gap-4 px-4 py-8"
      onDragOver={() => setOver(true)}
      onDragLeave={(e) => !e.currentTarget.contains(e.relatedTarget as Node | null) && setOver(false)}
      onDrop={drop}
    >
      <h1 className="text-lg font-semibold">Import</h1>
      <p className="text-muted">
        Import sessions that Tapedeck exported as NDJSON, and conversations of other programs: OpenAI chat messages,
        Claude Code sessions, AG-UI event logs and asciinema terminal recordings.
      </p>
      <Choose name={job.file?.name} over={over} disabled={job.busy?.action === "import"} onFile={job.choose} />
      {job.file && <Chosen job={job} onFormat={job.setFormat} />}
      {job.busy && <Progress busy={job.busy} onCancel={job.cancel} />}
      {job.error !== undefined && (
        <>
          <ErrorBox error={job.error} />
          <p className="text-[13px] text-muted">Nothing was imported.</p>
        </>
      )}
      {job.preview && !job.done && (
        <>
          <PreviewTable preview={job.preview} />
          <SkippedLines lines={job.preview.skipped} />
          <div className="flex gap-2">
            <Button look="primary" onClick={job.start} busy={job.busy !== undefined}>
              Import {plural(job.preview.total, "session")}
            </Button>
            <Button look="ghost" onClick={job.cancel}>
              Cancel
            </Button>
          </div>
        </>
      )}
      {job.done && <Done done={job.done} />}
    </div>
  );
}

/** Prevents a file dropped elsewhere from replacing the page. */
function keepFilesHere(): () => void {
  const keep = (e: Event) => e.preventDefault();
  for (const type of ["dragover", "drop"]) document.addEventListener(type, keep);
  return () => {
    for (const type of ["dragover", "drop"]) document.removeEventListener(type, keep);
  };
}

function Choose(p: { name?: string; over: boolean; disabled: boolean; onFile: (f: File) => void }) {
  return (
    <div
      className={`flex flex-col items-center gap-3 rounded-lg border-2 border-dashed px-6 py-10 ${p.over ? "border-accent bg-accent-soft" : "border-line"}`}
    >
      <p className="text-muted">{p.name ? "Drop another file here, or" : "Drop a file here, or"}</p>
      <label className="inline-flex h-8 cursor-pointer items-center rounded-md border border-line bg-panel px-3 text-[13px] font-medium has-focus-visible:outline-2 has-focus-visible:outline-accent hover:bg-raised has-disabled:cursor-not-allowed has-disabled:opacity-50">
        {p.name ? "Choose another file" : "Choose a file"}
        <input
          type="file"
          className="sr-only"
          disabled={p.disabled}
          onChange={(e) => {
            const file = e.target.files?.[0];
            e.target.value = ""; // so that the same file can be chosen again after it has changed
            if (file) p.onFile(file);
          }}
        />
      </label>
    </div>
  );
}

function Chosen({ job, onFormat }: { job: Import; onFormat: (format: string) => void }) {
  return (
    <div className="flex flex-wrap items-center gap-x-4 gap-y-2 text-[13px]">
      <p className="min-w-0 flex-1 truncate">
        <span className="font-medium">{job.file?.name}</span>{" "}
        <span className="text-muted">{sizeOf(job.file?.size ?? 0)}</span>
      </p>
      <label className="flex items-center gap-2 text-muted">
        Format
        <select
          className={field}
          value={job.format}
          disabled={job.busy?.action === "import" || job.done !== undefined}
          onChange={(e) => onFormat(e.target.value)}
        >
          {formats.map(([format, name]) => (
            <option key={format} value={format}>
              {name}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

function Progress({ busy, onCancel }: { busy: NonNullable<Import["busy"]>; onCancel: () => void }) {
  const { share, action } = busy;
  const doing = action === "preview" ? "Reading the file" : "Importing";
  return (
    <div role="status" className="flex items-center gap-3 text-[13px] text-muted">
      <Spinner />
      <span>
        {share < 1 ? `${doing}: ${Math.floor(share * 100)}% sent` : `${doing}: file sent, the server is processing it`}
      </span>
      <progress className="h-1.5 flex-1 accent-accent" max={1} value={share} aria-label="Upload progress" />
      {action === "import" && <Button onClick={onCancel}>Stop</Button>}
    </div>
  );
}

function Done({ done }: { done: Imported }) {
  return (
    <div role="status" className="flex flex-col gap-2 rounded-md border border-ok/40 bg-ok-soft px-3 py-2 text-[13px]">
      <p className="font-medium text-ok">
        {plural(done.sessions.length, "session")} with {plural(done.events, "event")} imported
      </p>
      <ul>
        {done.sessions.slice(0, 100).map((id) => (
          <li key={id}>
            <Link to="/s/$id" params={{ id }} className="font-mono text-accent hover:underline">
              {id}
            </Link>
          </li>
        ))}
      </ul>
      {done.sessions.length > 100 && <Link to="/">See all in the list</Link>}
      <SkippedLines lines={done.skipped} />
    </div>
  );
}

export function sizeOf(bytes: number): string {
  if (bytes < 1000) return plural(bytes, "byte");
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} KB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
