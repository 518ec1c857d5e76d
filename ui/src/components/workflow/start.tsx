import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type Diagram as Checked, type Started, TapedeckError } from "@tapedeck/client";
import { Suspense, useId, useMemo, useState } from "react";
import { api } from "@/client";
import { visible } from "../conversation/action";
import { plural } from "../format";
import { lazyPart } from "../lazy-part";
import { Button, ErrorBox, field, Loading } from "../ui";
import { storedName } from "./file";
import { modelOf, undrawnText } from "./model";
import { Problems } from "./problems";
import { StartForm } from "./start-form";

const Diagram = lazyPart(() => import("./diagram"));

interface Props {
  bpmn: string;
  /** The stored version that this is; absent for a file. */
  stored?: { name: string; version: string };
  /** The name of the file. */
  file?: string;
  onStarted: (s: Started) => void;
  onStored: (name: string) => void;
}

/** A diagram with what is wrong with it, and the form that starts it. */
export default function StartWorkflow({ bpmn, stored, file, onStarted, onStored }: Props) {
  const [agents, setAgents] = useState<Record<string, string>>({});
  const checked = useQuery({
    queryKey: ["check", stored?.name, stored?.version, bpmn, agents],
    queryFn: ({ signal }) => api.checkWorkflow({ bpmn, agents }, { signal }),
    placeholderData: (old) => old,
    staleTime: 30_000,
    retry: false,
  });
  const lines = useMemo(() => bpmn.split("\n"), [bpmn]);
  const problems = checked.error instanceof TapedeckError ? checked.error.problems : [];
  // What the server cannot read as XML is not read here either: the browser would log an error.
  const readable = checked.isSuccess || problems.some((p) => p.element);
  const model = useMemo(() => (readable ? modelOf(bpmn) : undefined), [bpmn, readable]);
  const classes = useMemo(
    () => new Map(problems.flatMap((p) => (p.element ? [[p.element, "state-failed"]] : []))),
    [problems],
  );
  const d = checked.isError ? undefined : checked.data;
  const unmet = d?.unmet ?? [];
  return (
    <div className="flex flex-col gap-4">
      <div>
        <h2 className="text-base font-semibold [overflow-wrap:anywhere]">
          {visible(d?.title || file || stored?.name || "")}
        </h2>
        <p className="text-[13px] text-muted [overflow-wrap:anywhere]">{about(d, stored, file)}</p>
      </div>
      {model && !model.drawn && <p className="text-[13px] text-muted">{undrawnText(model)}</p>}
      {model?.drawn && (
        <div className="h-64 rounded-md border border-line bg-bg">
          <Suspense fallback={<Loading what="the diagram" />}>
            <Diagram xml={bpmn} process={d?.process} classes={classes} />
          </Suspense>
        </div>
      )}
      {checked.isPending && <Loading what="the check" />}
      {checked.isError && problems.length === 0 && (
        <ErrorBox error={checked.error} onRetry={() => void checked.refetch()} />
      )}
      {problems.length > 0 && <Problems title="This diagram cannot run" problems={problems} lines={lines} />}
      {unmet.length > 0 && <Problems title="A run still needs" problems={unmet} lines={lines} mild />}
      {d?.warnings && d.warnings.length > 0 && (
        <details className="text-[13px]">
          <summary className="text-warn">{plural(d.warnings.length, "warning")}: what a run leaves out</summary>
          <div className="mt-2">
            <Problems title="Warnings" problems={d.warnings} lines={lines} mild />
          </div>
        </details>
      )}
      {d && (
        <StartForm
          key={d.digest}
          diagram={d}
          run={stored ?? { bpmn }}
          agents={agents}
          onAgents={setAgents}
          refused={unmet.length > 0 ? "Give every task an agent first." : undefined}
          onStarted={onStarted}
        />
      )}
      {d && !stored && <Store bpmn={bpmn} file={file ?? ""} onStored={onStored} />}
    </div>
  );
}

function about(d: Checked | undefined, stored: Props["stored"], file?: string): string {
  const parts = [stored ? `Stored as ${stored.name}` : `From the file ${visible(file ?? "")}`];
  if (d?.process) parts.push(`process ${visible(d.process)}`);
  if (d) parts.push(plural(d.tasks.length, "task of an agent", "tasks of agents"));
  return parts.join(" · ");
}

/** Keeps the diagram of a file on the server. */
function Store({ bpmn, file, onStored }: { bpmn: string; file: string; onStored: (name: string) => void }) {
  const id = useId();
  const queries = useQueryClient();
  const [name, setName] = useState(() => storedName(file));
  const put = useMutation({
    mutationFn: () => api.putWorkflow(name, bpmn),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["workflows"] });
      onStored(name);
    },
  });
  return (
    <form
      aria-label="Store"
      className="flex flex-col gap-2 border-t border-line pt-4 text-[13px]"
      onSubmit={(e) => {
        e.preventDefault();
        put.mutate();
      }}
    >
      <label htmlFor={id} className="font-medium">
        Keep it on the server as
      </label>
      <div className="flex flex-wrap gap-2">
        <input
          id={id}
          className={`${field} w-64 max-w-full max-sm:h-11`}
          value={name}
          required
          maxLength={128}
          pattern="[A-Za-z0-9._\-]+"
          title="Letters, digits and - _ ."
          onChange={(e) => setName(e.target.value)}
        />
        <Button type="submit" busy={put.isPending} className="max-sm:h-11">
          Store
        </Button>
      </div>
      {put.isError && <ErrorBox error={put.error} onClose={() => put.reset()} />}
    </form>
  );
}
