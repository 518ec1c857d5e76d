import { useMutation } from "@tanstack/react-query";
import type { Json, JsonObject } from "@tapedeck/client";
import type { WorkflowMoment } from "@tapedeck/client/workflow";
import { useState } from "react";
import { api } from "@/client";
import { useForget } from "@/hooks/forget";
import { visible } from "../conversation/action";
import { StatusChip } from "../status";
import { Button, Dialog, ErrorBox } from "../ui";
import { waitsOf } from "./states";

interface Props {
  id: string;
  moment: WorkflowMoment;
  /** Why nothing can be changed now; undefined if it can. */
  refused?: string;
  notify: (text: string) => void;
  /** Opens the variables, which are always visible only where there is space. */
  onVariables: () => void;
}

const outcomes = new Map(
  Object.entries({
    completed: "It reached its end.",
    terminated: "A terminate event ended it.",
    failed: "An error ended it.",
    cancelled: "It was cancelled.",
  }),
);

/** The name and the status of the workflow, and what can be done with all of it. */
export function Toolbar({ id, moment: { workflow: w, diagram: d }, refused, notify, onVariables }: Props) {
  const waits = waitsOf(w).some((wait) => wait.for === "user");
  const did = (text: string) => () => notify(text);
  const clear = useMutation({ mutationFn: () => api.clear(id), onSuccess: did("Cleared. Undo restores it.") });
  const undo = useMutation({ mutationFn: () => api.undo(id), onSuccess: did("Restored") });
  const cancel = useMutation({ mutationFn: () => api.cancel(id, w?.invocation), onSuccess: did("Cancelled") });
  const resume = useMutation({
    mutationFn: () => api.resume(id, { thread: w?.thread }),
    onSuccess: did("The workflow continues"),
  });
  const again = useMutation({
    mutationFn: () =>
      api.runWorkflow({
        bpmn: d?.xml,
        session: id,
        thread: d?.thread,
        variables: given(d?.variables),
        agents: d?.agents,
      }),
    onSuccess: did("The workflow runs again"),
  });
  const [asks, setAsks] = useState(false);
  const all = [clear, undo, cancel, resume, again];
  const busy = all.some((m) => m.isPending);
  const failed = all.find((m) => m.isError);
  useForget(all, `${w?.invocation} ${w?.status}`);
  const common = { busy, disabled: refused !== undefined, className: "max-sm:h-11" };
  const why = (what: string) => (refused ? `Cannot ${what}: ${refused}` : undefined);
  const stopped = w !== undefined && ["interrupted", "cancelled", "failed"].includes(w.status);
  return (
    <div className="not-zen border-b border-line bg-panel">
      <div className="flex min-h-11 flex-wrap items-center gap-x-3 gap-y-1 px-4 py-1 text-[13px]">
        <p className="min-w-0 truncate font-medium">{visible(w?.name || d?.name || d?.process || "Workflow")}</p>
        <StatusChip status={waits && w?.status === "running" ? "waiting" : (w?.status ?? "idle")} />
        <span className="text-xs text-muted">
          {w ? outcomes.get(w.outcome ?? "") : "Nothing of it is active at this moment."}
        </span>
        <div className="ml-auto flex flex-wrap items-center gap-1.5">
          <Button look="ghost" className="max-sm:h-11 lg:hidden" onClick={onVariables}>
            Variables
          </Button>
          {w?.status === "running" && (
            <Button icon="stop" title={why("cancel")} {...common} onClick={() => cancel.mutate()}>
              Cancel
            </Button>
          )}
          {stopped && (
            <Button
              id="resume"
              look="primary"
              icon="play"
              title={why("resume")}
              {...common}
              onClick={() => resume.mutate()}
            >
              Resume
            </Button>
          )}
          {!w && (
            <>
              <Button icon="undo" title={why("undo")} {...common} onClick={() => undo.mutate()}>
                Undo
              </Button>
              <Button look="primary" icon="play" title={why("run it")} {...common} onClick={() => again.mutate()}>
                Run again
              </Button>
            </>
          )}
          {w && (
            <Button
              look="ghost"
              icon="clear"
              title={why("clear")}
              {...common}
              onClick={() => (w.status === "running" ? setAsks(true) : clear.mutate())}
            >
              Clear execution
            </Button>
          )}
        </div>
      </div>
      {asks && (
        <ClearDialog
          onClose={() => setAsks(false)}
          onClear={() => {
            setAsks(false);
            clear.mutate();
          }}
        />
      )}
      {failed && (
        <div className="px-4 pb-2">
          <ErrorBox error={failed.error} onClose={() => failed.reset()} />
        </div>
      )}
    </div>
  );
}

/** Asks before a clear that cancels a run: Undo restores what was done, but not the run. */
function ClearDialog({ onClose, onClear }: { onClose: () => void; onClear: () => void }) {
  return (
    <Dialog title="Clear a workflow that runs?" onClose={onClose}>
      <div className="flex flex-col gap-3 text-[13px]">
        <p>
          The workflow is not at its end. A clear cancels it, with what its agents do now. Undo restores what was done
          until then, and Resume continues it.
        </p>
        <div className="flex flex-wrap justify-end gap-2">
          <Button look="ghost" onClick={onClose}>
            Keep it
          </Button>
          <Button look="danger" icon="clear" onClick={onClear}>
            Cancel and clear
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

/** The members that have a value. */
export function given(o: JsonObject = {}): Record<string, Json> {
  return Object.fromEntries(Object.entries(o).filter((m): m is [string, Json] => m[1] !== undefined));
}
