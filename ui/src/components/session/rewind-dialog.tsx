import { useMutation, useQuery } from "@tanstack/react-query";
import { type Json, type Snapshot, TapedeckError, type ToolCall } from "@tapedeck/client";
import { useState } from "react";
import { api } from "@/client";
import { editsOf } from "../conversation/edit";
import { brief, plural } from "../format";
import { Button, Dialog, ErrorBox } from "../ui";
import { putDraft } from "./composer";

interface Props {
  id: string;
  invocation: string;
  /** Its first offset, if the index has it: the view has only a part of a long session. */
  first?: number;
  /** The conversation now. */
  view: Snapshot;
  onClose: () => void;
  onDone: () => void;
  onFork: (at: number) => void;
}

/** Shows what a rewind will hide, and asks for confirmation. */
export function RewindDialog({ id, invocation, first, view: now, onClose, onDone, onFork }: Props) {
  const [before, hold] = useState<Snapshot>();
  const view = before ?? now;
  const hidden = hiddenByRewind(view, invocation, undefined, first);
  // Another user may rewind while the dialog is open: keep its subject.
  const [{ task, thread: own }] = useState(hidden);
  const hasThreads = view.threads.length > 1;
  const [only, setOnly] = useState(false);
  const [refused, setRefused] = useState(false);
  const thread = only ? own : undefined;
  const shown = thread ? hiddenByRewind(view, invocation, thread, first) : hidden;
  const rewind = useMutation({
    // The stream may deliver the rewind before its response arrives. The view would then have nothing to hide.
    mutationFn: () => api.rewind(id, { before_invocation_id: invocation, thread, force: refused || undefined }),
    onMutate: () => hold(now),
    onError: (err) => {
      hold(undefined);
      if (needsForce(err)) setRefused(true);
    },
    onSuccess: () => {
      if (task) putDraft(id, task);
      onDone();
    },
  });
  return (
    <Dialog title="Rewind to here?" onClose={onClose}>
      <div className="flex flex-col gap-3 text-[13px]">
        {refused ? (
          <Refused task={task} />
        ) : (
          <>
            <p>
              The session returns to its state before{" "}
              {task ? <q className="font-medium">{brief(task, 80)}</q> : "this invocation"}.
            </p>
            <dl className="grid grid-cols-[5rem_1fr] gap-y-1">
              <dt className="text-muted">Hides</dt>
              <dd>
                {countsOf(shown)} (from offset {shown.first}). The log keeps them, and Undo restores them.
              </dd>
              <dt className="text-muted">Files</dt>
              <dd>
                Changes that tools made outside of the session are not undone.
                {shown.files.length > 0 && <Edited files={shown.files} />}
              </dd>
              <StateChange id={id} first={shown.first} now={view.state?.value} />
              {shown.running > 0 && (
                <>
                  <dt className="text-muted">Running</dt>
                  <dd className="text-warn">{plural(shown.running, "run")} will be cancelled first.</dd>
                </>
              )}
            </dl>
          </>
        )}
        {hasThreads && own && !refused && (
          <label className="flex items-center gap-2">
            <input type="checkbox" checked={only} onChange={(e) => setOnly(e.target.checked)} /> Only in thread {own}
          </label>
        )}
        {rewind.isError && !needsForce(rewind.error) && <ErrorBox error={rewind.error} />}
        <div className="flex flex-wrap justify-end gap-2">
          {/* Not in the place of "Rewind": a double click there must not force it. */}
          {refused && (
            <Button
              look="danger"
              icon="rewind"
              className="mr-auto"
              busy={rewind.isPending}
              onClick={() => rewind.mutate()}
            >
              Rewind anyway
            </Button>
          )}
          <Button look="ghost" onClick={onClose}>
            Cancel
          </Button>
          <Button icon="fork" onClick={() => onFork(hidden.first)}>
            Fork instead
          </Button>
          {!refused && (
            <Button look="primary" icon="rewind" busy={rewind.isPending} onClick={() => rewind.mutate()}>
              Rewind
            </Button>
          )}
        </div>
      </div>
    </Dialog>
  );
}

/** The server refuses a rewind that makes reverted events active again, unless it is forced. */
function needsForce(err: unknown): boolean {
  return err instanceof TapedeckError && err.status === 409 && /\bforce\b/.test(err.hint ?? "");
}

function Refused({ task }: { task?: string }) {
  return (
    <div role="alert" className="flex flex-col gap-2 rounded-md border border-warn/50 bg-warn-soft px-3 py-2">
      <p className="font-medium">
        Nothing was changed. The session was already rewound to an earlier turn, so{" "}
        {task ? <q>{brief(task, 80)}</q> : "this turn"} is already reverted.
      </p>
      <p>
        “Rewind anyway” restores the reverted events before this turn and hides all later events. Undo reverts that.
      </p>
    </div>
  );
}

function Edited({ files }: { files: string[] }) {
  return (
    <>
      {" "}
      {plural(files.length, "file was", "files were")} edited and stay{files.length === 1 ? "s" : ""} as{" "}
      {files.length === 1 ? "it is" : "they are"}:
      <ul className="max-h-28 overflow-y-auto font-mono text-xs">
        {files.map((f) => (
          <li key={f} className="[overflow-wrap:anywhere]">
            {f}
          </li>
        ))}
      </ul>
    </>
  );
}

/** Lists the members of the shared state that will change; nothing if there are none. */
function StateChange({ id, first, now }: { id: string; first: number; now?: Json }) {
  const then = useQuery({
    queryKey: ["state-at", id, first],
    queryFn: ({ signal }) => api.snapshot(id, { at: first, limit: 1 }, { signal }),
    enabled: first > 0,
  });
  const keys = then.data ? changedKeys(then.data.state?.value, now) : [];
  if (keys.length === 0) return null;
  return (
    <>
      <dt className="text-muted">State</dt>
      <dd className="[overflow-wrap:anywhere]">
        {plural(keys.length, "member changes", "members change")} back: {brief(keys.join(", "), 200)}
      </dd>
    </>
  );
}

function countsOf({ turns, messages, calls }: { turns: number; messages: number; calls: number }): string {
  const counts: [n: number, what: string][] = [
    [turns, "turn"],
    [messages, "message"],
    [calls, "tool call"],
  ];
  const some = counts.filter(([n]) => n > 0);
  return some.map(([n, what]) => plural(n, what)).join(", ") || "No message";
}

/** The names of the members that differ between two states. */
export function changedKeys(a: Json | undefined, b: Json | undefined): string[] {
  const of = (v: Json | undefined) => (v && typeof v === "object" && !Array.isArray(v) ? v : {});
  const [x, y] = [of(a), of(b)];
  const names = new Set([...Object.keys(x), ...Object.keys(y)]);
  return [...names].filter((n) => JSON.stringify(x[n]) !== JSON.stringify(y[n]));
}

/** The active items that a rewind to before an invocation hides: those from its first offset on. */
export function hiddenByRewind(view: Snapshot, invocation: string, thread?: string, known?: number) {
  const lists = [view.messages, view.tool_calls, view.runs];
  const own = lists.flat().filter((i) => i.invocation === invocation);
  const first = known ?? own.reduce((n, i) => Math.min(n, i.offset), Number.POSITIVE_INFINITY);
  const after = <T extends { offset: number; thread: string }>(list: T[]) =>
    list.filter((i) => i.offset >= first && (!thread || i.thread === thread));
  const messages = after(view.messages);
  return {
    first: Number.isFinite(first) ? first : 0,
    thread: own[0]?.thread,
    task: view.messages.find((m) => m.invocation === invocation && m.role === "user")?.text,
    turns: new Set(messages.filter((m) => m.role === "user").map((m) => m.invocation)).size,
    messages: messages.filter((m) => m.role !== "tool" && m.role !== "reasoning").length,
    calls: after(view.tool_calls).length,
    files: filesOf(after(view.tool_calls)),
    running: after(view.runs).filter((r) => r.status === "running").length,
  };
}

/** The files that calls have edited, according to their arguments. */
function filesOf(calls: ToolCall[]): string[] {
  const path = ({ input: i }: ToolCall) =>
    i && typeof i === "object" && !Array.isArray(i) && (i.content !== undefined || Array.isArray(i.edits))
      ? (i.file_path ?? i.path ?? i.filePath)
      : undefined;
  const paths = calls.flatMap((c) => {
    const edits = editsOf(c);
    return edits.length > 0 ? edits.map((e) => e.path) : [path(c)];
  });
  return [...new Set(paths.filter((p) => typeof p === "string"))];
}
