import { useMutation, useQuery } from "@tanstack/react-query";
import type { Diagram, DiagramTask, DiagramVariable, Started } from "@tapedeck/client";
import { useId, useState } from "react";
import { api } from "@/client";
import { visible } from "../conversation/action";
import { FormFields } from "../form/form-fields";
import { inputOf, objectIn, startValues } from "../form/values";
import { Button, ErrorBox, field } from "../ui";
import { given } from "./toolbar";

interface Props {
  diagram: Diagram;
  /** What to run: a stored version, or the diagram itself. */
  run: { name: string; version: string } | { bpmn: string };
  agents: Record<string, string>;
  onAgents: (agents: Record<string, string>) => void;
  /** Why it cannot start now; undefined if it can. */
  refused?: string;
  onStarted: (s: Started) => void;
}

/** Asks for the variables and the agents of a run, and starts it. */
export function StartForm({ diagram: d, run, agents, onAgents, refused, onStarted }: Props) {
  const fields = d.fields ?? [];
  const [values, setValues] = useState(() => startValues(fields));
  const [more, setMore] = useState("");
  const [title, setTitle] = useState("");
  const start = useMutation({
    mutationFn: async () =>
      api.runWorkflow({
        ...run,
        variables: given({ ...objectIn(more), ...inputOf(fields, values) }),
        agents,
        title: title.trim() || undefined,
      }),
    onSuccess: onStarted,
  });
  const [moreId, titleId] = [useId(), useId()];
  const wanted = d.wanted ?? [];
  return (
    <form
      aria-label="Start"
      className="flex flex-col gap-4 text-[13px]"
      onSubmit={(e) => {
        e.preventDefault();
        start.mutate();
      }}
    >
      {fields.length > 0 && <FormFields fields={fields} values={values} onChange={setValues} />}
      <Agents tasks={d.tasks} agents={agents} onChange={onAgents} />
      {wanted.length > 0 && <Wanted variables={wanted} />}
      <details open={wanted.length > 0 || undefined}>
        <summary className="text-muted hover:text-text">More: title, other variables</summary>
        <div className="mt-2 flex flex-col gap-3">
          <div className="flex flex-col gap-1">
            <label htmlFor={titleId} className="font-medium">
              Title of the session <span className="font-normal text-muted">(optional)</span>
            </label>
            <input
              id={titleId}
              value={title}
              maxLength={200}
              placeholder={d.title}
              onChange={(e) => setTitle(e.target.value)}
              className={`${field} max-w-md`}
            />
          </div>
          <div className="flex flex-col gap-1">
            <label htmlFor={moreId} className="font-medium">
              Other variables <span className="font-normal text-muted">(a JSON object, optional)</span>
            </label>
            <textarea
              id={moreId}
              rows={3}
              value={more}
              placeholder='{"topic": "moon"}'
              onChange={(e) => setMore(e.target.value)}
              className="max-w-xl rounded-md border border-line bg-panel px-2 py-1.5 font-mono text-xs"
            />
          </div>
        </div>
      </details>
      {start.isError && <ErrorBox error={start.error} />}
      <div className="sticky bottom-0 flex flex-wrap items-center gap-3 border-t border-line bg-bg py-2">
        <Button
          type="submit"
          look="primary"
          icon="play"
          busy={start.isPending}
          disabled={refused !== undefined}
          className="max-sm:h-11"
        >
          Start
        </Button>
        {refused && <span className="text-muted">{refused}</span>}
      </div>
    </form>
  );
}

/** The variables that no field asks for. A run can begin without those that a message may bring. */
function Wanted({ variables }: { variables: DiagramVariable[] }) {
  const fromMessage = variables.some((v) => v.from_message);
  const shown = variables.slice(0, 20);
  return (
    <p className="text-muted [overflow-wrap:anywhere]">
      No element sets{" "}
      {shown.map((v, i) => (
        <span key={v.name}>
          {i > 0 && ", "}
          <code>{visible(v.name)}</code> (line {v.line})
        </span>
      ))}
      {variables.length > shown.length && `, and ${variables.length - shown.length} more`}: give{" "}
      {variables.length === 1 ? "it" : "them"} as other variables
      {fromMessage && `, or a message may bring ${variables.length === 1 ? "it" : "them"}`}.
    </p>
  );
}

interface AgentsProps {
  tasks: DiagramTask[];
  agents: Record<string, string>;
  onChange: (agents: Record<string, string>) => void;
}

/** Which agent does each task. A task whose agent is missing has to be given one. */
function Agents({ tasks, agents, onChange }: AgentsProps) {
  const list = useQuery({ queryKey: ["agents"], queryFn: ({ signal }) => api.agents({ signal }) });
  const names = list.data?.filter((a) => a.kind !== "workflow").map((a) => a.name) ?? [];
  if (tasks.length === 0) return null;
  return (
    <fieldset className="flex flex-col gap-2">
      <legend className="mb-1 font-medium">Who does the tasks</legend>
      {tasks.map((t) => (
        <AgentOf
          key={t.element}
          task={t}
          names={names}
          chosen={agents[t.element]}
          onChange={(agent) => {
            const { [t.element]: _, ...others } = agents;
            onChange(agent ? { ...others, [t.element]: agent } : others);
          }}
        />
      ))}
      {list.isError && <ErrorBox error={list.error} onRetry={() => void list.refetch()} />}
    </fieldset>
  );
}

interface AgentOfProps {
  task: DiagramTask;
  names: string[];
  chosen?: string;
  onChange: (agent: string) => void;
}

function AgentOf({ task: t, names, chosen, onChange }: AgentOfProps) {
  const id = useId();
  const own = t.agent && !chosen ? t.agent : "";
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
      <label htmlFor={id} className="w-52 max-w-full truncate" title={visible(t.name || t.element)}>
        {visible(t.name || t.element)}
      </label>
      <select
        id={id}
        className={`${field} w-56 max-w-full max-sm:h-11`}
        value={chosen ?? ""}
        required={!t.agent && !chosen}
        onChange={(e) => onChange(e.target.value)}
      >
        <option value="">{ownText(t, own)}</option>
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </div>
  );
}

function ownText(t: DiagramTask, own: string): string {
  if (own) return `${visible(own)} (as in the file)`;
  if (t.agent) return "As in the file";
  return t.type ? `Choose an agent for ${visible(t.type)}` : "Choose an agent";
}
