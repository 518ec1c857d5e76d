import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "@/data/api";
import type { Snapshot } from "@/fold/types";
import { brief, plural } from "../format";
import { Button, Dialog, ErrorBox } from "../ui";
import { putDraft } from "./composer";

interface Props {
  id: string;
  invocation: string;
  /** Its first offset, if the index knows it: of a long session not all is in the view. */
  first?: number;
  /** The conversation as it is now. */
  view: Snapshot;
  onClose: () => void;
  onDone: () => void;
  onFork: (at: number) => void;
}

/** Says what a rewind hides before it is done. */
export function RewindDialog({ id, invocation, first, view, onClose, onDone, onFork }: Props) {
  const hidden = whatHides(view, invocation, undefined, first);
  const lanes = view.threads.length > 1;
  const [only, setOnly] = useState(false);
  const thread = only && hidden.thread ? hidden.thread : undefined;
  const shown = thread ? whatHides(view, invocation, thread, first) : hidden;
  const rewind = useMutation({
    // The rewind may be followed before it is answered: then the view has the task no more.
    mutationFn: (_task: string | undefined) => api.rewind(id, { before_invocation_id: invocation, thread }),
    onSuccess: (_, task) => {
      if (task) putDraft(id, task);
      onDone();
    },
  });
  return (
    <Dialog title="Rewind to here?" onClose={onClose}>
      <div className="flex flex-col gap-3 text-[13px]">
        <p>
          The session goes back to what it was before{" "}
          {hidden.task ? <q className="font-medium">{brief(hidden.task, 80)}</q> : "this invocation"}.
        </p>
        <dl className="grid grid-cols-[5rem_1fr] gap-y-1">
          <dt className="text-muted">Hides</dt>
          <dd>
            {plural(shown.turns, "turn")}, {plural(shown.messages, "message")}, {plural(shown.calls, "tool call")} (from
            offset {shown.first}). The log keeps them, and Undo brings them back.
          </dd>
          <dt className="text-muted">Files</dt>
          <dd>What tools have done outside of the session is not undone.</dd>
          {shown.running > 0 && (
            <>
              <dt className="text-muted">Running</dt>
              <dd className="text-warn">{plural(shown.running, "run")} will be cancelled first.</dd>
            </>
          )}
        </dl>
        {lanes && hidden.thread && (
          <label className="flex items-center gap-2">
            <input type="checkbox" checked={only} onChange={(e) => setOnly(e.target.checked)} /> Only the thread{" "}
            {hidden.thread}
          </label>
        )}
        {rewind.isError && <ErrorBox error={rewind.error} />}
        <div className="flex justify-end gap-2">
          <Button look="ghost" onClick={onClose}>
            Keep it
          </Button>
          <Button icon="fork" onClick={() => onFork(hidden.first)}>
            Fork instead
          </Button>
          <Button look="primary" icon="rewind" busy={rewind.isPending} onClick={() => rewind.mutate(hidden.task)}>
            Rewind
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

/** What is in force and began with the invocation, or after it. */
export function whatHides(view: Snapshot, invocation: string, thread?: string, known?: number) {
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
    running: after(view.runs).filter((r) => r.status === "running").length,
  };
}
