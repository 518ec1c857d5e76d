import type { ToolCall } from "@tapedeck/client";
import { memo, useMemo } from "react";
import { useSame } from "@/hooks/same";
import { languageOfFile } from "../code/language";
import { visible } from "../conversation/action";
import { asPatch, changesOf, type FileChanges } from "../conversation/changes";
import { CopyButton } from "../conversation/copy-button";
import { editsOf } from "../conversation/edit";
import { DiffLines } from "../conversation/edit-diff";
import { plural } from "../format";

interface Props {
  calls: ToolCall[];
  /** Messages before the calls that are not loaded. */
  earlier: number;
  onSeek: (at: number) => void;
}

/** With more files, each one is folded at first. */
const maxOpen = 10;
/** The limit of shown files. */
const maxFiles = 200;

/** What tools have changed in files up to the playhead, as one diff. */
export const ChangesPanel = memo(function ChangesPanel({ calls, earlier, onSeek }: Props) {
  const editing = useSame(calls.filter((c) => c.status === "complete" && editsOf(c).length > 0));
  const files = useMemo(() => changesOf(editing), [editing]);
  const note = earlier > 0 && (
    <p className="rounded-md bg-warn-soft px-2 py-1 text-xs text-warn">
      The oldest part of this session is not loaded: its changes are missing here. The summary names all files.
    </p>
  );
  if (files.length === 0)
    return (
      <>
        {note}
        <p className="py-6 text-center text-muted">No tool has changed a file, as far as arguments show it.</p>
      </>
    );
  const [added, removed] = files.reduce(([a, r], f) => [a + f.added, r + f.removed], [0, 0]);
  return (
    <div className="flex flex-col gap-2">
      {note}
      <div className="flex items-center gap-2 text-xs text-muted tabular-nums">
        <span className="flex-1">
          {plural(files.length, "file")}: <Counts added={added} removed={removed} />
        </span>
        <CopyButton text={asPatch(files)} label="Copy the changes as a diff" />
      </div>
      {files.slice(0, maxFiles).map((f) => (
        <FileChange key={f.path} file={f} open={files.length <= maxOpen} onSeek={onSeek} />
      ))}
      {files.length > maxFiles && (
        <p className="text-muted">Not shown: {plural(files.length - maxFiles, "more file")}</p>
      )}
    </div>
  );
});

function Counts({ added, removed }: { added: number; removed: number }) {
  return (
    <>
      <span className="text-ok">+{added.toLocaleString("en")}</span>{" "}
      <span className="text-bad">−{removed.toLocaleString("en")}</span>
    </>
  );
}

function FileChange({ file: f, open, onSeek }: { file: FileChanges; open: boolean; onSeek: Props["onSeek"] }) {
  const path = visible(f.path);
  const parts = useMemo(() => f.parts.map((p) => p.map((l) => ({ op: l.op, text: visible(l.text) }))), [f.parts]);
  return (
    <details open={open} className="rounded-md border border-line">
      <summary className="px-2 py-1.5 pointer-coarse:min-h-11">
        <span className="font-mono text-xs [overflow-wrap:anywhere]">{path}</span>{" "}
        <span className="text-xs tabular-nums">
          <Counts added={f.added} removed={f.removed} />
        </span>
      </summary>
      <div className="flex flex-col gap-1.5 border-t border-line p-1.5">
        <p className="text-xs text-muted">
          {plural(f.edits, "edit")}
          {f.whole && " · written whole; what it had before is not in the log"}
          {" · "}
          <button type="button" className="min-h-6 text-accent hover:underline" onClick={() => onSeek(f.last + 1)}>
            Go to the last one
          </button>
        </p>
        {parts.length === 0 && <p className="text-muted">Later edits undo its edits.</p>}
        {parts.map((lines, i) => (
          <DiffLines
            // biome-ignore lint/suspicious/noArrayIndexKey: parts have no id
            key={i}
            lines={lines}
            label={parts.length > 1 ? `Changes to ${path}, part ${i + 1}` : `Changes to ${path}`}
            language={languageOfFile(f.path)}
          />
        ))}
      </div>
    </details>
  );
}
