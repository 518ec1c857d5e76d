import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { Started } from "@tapedeck/client";
import { type DragEvent, Suspense, useEffect, useState } from "react";
import { api } from "@/client";
import { visible } from "@/components/conversation/action";
import { date } from "@/components/format";
import { Icon } from "@/components/icons";
import { lazyPart } from "@/components/lazy-part";
import { Button, Dialog, ErrorBox, field, Loading, Notice } from "@/components/ui";
import { type DiagramFile, readDiagram } from "@/components/workflow/file";

const route = getRouteApi("/workflows");
const StartWorkflow = lazyPart(() => import("@/components/workflow/start"));

/** The stored diagrams, and the way to run one of them or one from a file. */
export function WorkflowsPage() {
  const { name, version } = route.useSearch();
  const navigate = route.useNavigate();
  const [over, setOver] = useState(false);
  const read = useMutation({ mutationFn: readDiagram, onSuccess: () => void navigate({ search: {} }) });
  const file = name ? undefined : read.data;
  useEffect(() => {
    document.title = "Workflows · Tapedeck";
  }, []);
  useEffect(keepFilesHere, []);
  const started = (s: Started) =>
    void navigate({ to: "/s/$id", params: { id: s.session_id }, search: { view: "workflow" } });
  const drop = (e: DragEvent) => {
    setOver(false);
    const dropped = e.dataTransfer.files[0];
    if (dropped) read.mutate(dropped);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button does the same as a drop
    <div
      className={`mx-auto grid max-w-6xl gap-6 px-4 py-6 lg:grid-cols-[20rem_minmax(0,1fr)] ${over ? "bg-accent-soft" : ""}`}
      onDragOver={() => setOver(true)}
      onDragLeave={(e) => !e.currentTarget.contains(e.relatedTarget as Node | null) && setOver(false)}
      onDrop={drop}
    >
      <div className="flex min-w-0 flex-col gap-4">
        <h1 className="text-lg font-semibold">Workflows</h1>
        <p className="text-[13px] text-muted">
          A workflow is a diagram in BPMN that runs. Its tasks are done by agents, people and expressions.
        </p>
        <Choose onFile={read.mutate} busy={read.isPending} />
        {read.isError && <ErrorBox error={read.error} onClose={() => read.reset()} />}
        <Stored current={name} />
      </div>
      <div className="min-w-0">
        <Suspense fallback={<Loading what="the diagram" />}>
          {name ? (
            <StoredWorkflow key={`${name} ${version}`} name={name} version={version} onStarted={started} />
          ) : file ? (
            <FromFile
              file={file}
              onStarted={started}
              onStored={(stored) => void navigate({ search: { name: stored } })}
            />
          ) : (
            <Notice title="Choose a workflow">
              Choose a stored one, or a <code className="font-mono">.bpmn</code> file of Camunda Modeler, bpmn.io or
              another tool. Nothing starts before you say so.
            </Notice>
          )}
        </Suspense>
      </div>
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

function Choose({ onFile, busy }: { onFile: (f: File) => void; busy: boolean }) {
  return (
    <label className="flex cursor-pointer items-center gap-3 rounded-lg border-2 border-dashed border-line px-4 py-4 text-[13px] has-focus-visible:outline-2 has-focus-visible:outline-accent hover:bg-panel">
      <Icon name="export" className="text-muted" />
      <span>
        <span className="font-medium">Choose a .bpmn file</span>
        <span className="block text-muted">or drop it here</span>
      </span>
      <input
        type="file"
        accept=".bpmn,.xml,application/xml,text/xml"
        className="sr-only"
        disabled={busy}
        onChange={(e) => {
          const file = e.target.files?.[0];
          e.target.value = ""; // so that the same file can be chosen again after it has changed
          if (file) onFile(file);
        }}
      />
    </label>
  );
}

function Stored({ current }: { current?: string }) {
  const list = useQuery({ queryKey: ["workflows"], queryFn: ({ signal }) => api.workflows({ signal }) });
  if (list.isPending) return <Loading what="the workflows" />;
  if (list.isError) return <ErrorBox error={list.error} onRetry={() => void list.refetch()} />;
  if (list.data.length === 0)
    return <p className="text-[13px] text-muted">No workflow is stored yet. A file can be run without storing it.</p>;
  return (
    <nav aria-label="Stored workflows">
      <ul className="flex flex-col gap-1">
        {list.data.map((w) => (
          <li key={w.name}>
            <Link
              to="/workflows"
              search={{ name: w.name }}
              aria-current={w.name === current ? "true" : undefined}
              className={`flex min-h-12 items-center gap-3 rounded-md border px-3 py-1.5 hover:bg-raised ${w.name === current ? "border-accent bg-raised" : "border-line bg-panel"}`}
            >
              <Icon name="flow" className="text-muted" />
              <span className="min-w-0 flex-1">
                <span className="block truncate font-medium">{visible(w.title || w.name)}</span>
                <span className="block truncate text-xs text-muted">
                  {w.name} · {date(new Date(w.added_at))}
                </span>
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function FromFile(p: { file: DiagramFile; onStarted: (s: Started) => void; onStored: (name: string) => void }) {
  return (
    <StartWorkflow
      key={p.file.bpmn}
      bpmn={p.file.bpmn}
      file={p.file.name}
      onStarted={p.onStarted}
      onStored={p.onStored}
    />
  );
}

interface StoredProps {
  name: string;
  version?: string;
  onStarted: (s: Started) => void;
}

function StoredWorkflow({ name, version, onStarted }: StoredProps) {
  const navigate = route.useNavigate();
  const [asks, setAsks] = useState(false);
  const got = useQuery({
    queryKey: ["workflow", name, version],
    queryFn: ({ signal }) => api.workflow(name, version, { signal }),
    retry: false,
  });
  if (got.isPending) return <Loading what="the workflow" />;
  if (got.isError) return <ErrorBox error={got.error} onRetry={() => void got.refetch()} />;
  const d = got.data;
  const versions = d.versions ?? [];
  return (
    <div className="flex flex-col gap-4">
      <StartWorkflow
        key={d.digest}
        bpmn={d.bpmn ?? ""}
        stored={{ name, version: d.digest }}
        onStarted={onStarted}
        onStored={() => undefined}
      />
      <div className="flex flex-wrap items-center gap-3 border-t border-line pt-4 text-[13px]">
        <label className="flex min-w-0 items-center gap-2 text-muted">
          Version
          <select
            className={`${field} min-w-0`}
            value={d.digest}
            onChange={(e) => {
              const chosen = e.target.value;
              void navigate({ search: { name, version: chosen === versions[0]?.digest ? undefined : chosen } });
            }}
          >
            {versions.map((v, i) => (
              <option key={v.digest} value={v.digest}>
                {timeText(v.added_at)} · {v.digest.replace("sha256:", "").slice(0, 8)}
                {i === 0 ? " (current)" : ""}
              </option>
            ))}
          </select>
        </label>
        <Button look="danger" className="ml-auto" icon="clear" onClick={() => setAsks(true)}>
          Delete
        </Button>
      </div>
      {asks && <DeleteDialog name={name} onClose={() => setAsks(false)} />}
    </div>
  );
}

function timeText(at: string): string {
  return new Date(at).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

function DeleteDialog({ name, onClose }: { name: string; onClose: () => void }) {
  const navigate = route.useNavigate();
  const queries = useQueryClient();
  const remove = useMutation({
    mutationFn: () => api.removeWorkflow(name),
    onSuccess: async () => {
      await navigate({ search: {} });
      await queries.invalidateQueries({ queryKey: ["workflows"] });
    },
  });
  return (
    <Dialog title={`Delete ${name}?`} onClose={onClose}>
      <div className="flex flex-col gap-3 text-[13px]">
        <p>
          All versions of this diagram are deleted from the server. Sessions in which it runs or has run keep theirs.
        </p>
        {remove.isError && <ErrorBox error={remove.error} />}
        <div className="flex justify-end gap-2">
          <Button look="ghost" onClick={onClose}>
            Cancel
          </Button>
          <Button look="danger" icon="clear" busy={remove.isPending} onClick={() => remove.mutate()}>
            Delete
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
