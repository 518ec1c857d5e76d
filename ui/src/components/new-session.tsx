import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { Agent } from "@tapedeck/client";
import { useEffect, useId, useRef, useState } from "react";
import { useAgents } from "@/hooks/agents";
import { startSession } from "@/hooks/new-session";
import { remembered } from "@/hooks/remembered";
import { Button, Dialog, ErrorBox, field, Loading } from "./ui";

const draft = "tapedeck.new.task";
const lastAgent = "tapedeck.new.agent";

/** Enter starts where there is a keyboard; on a phone it makes a new line. */
const enterStarts = () => !matchMedia("(pointer: coarse)").matches;

/** Asks for all that a new session needs, and starts it. */
export default function NewSession({ onClose, onStarted }: { onClose: () => void; onStarted: (id: string) => void }) {
  const agents = useAgents();
  return (
    <Dialog title="New session" onClose={onClose}>
      {agents.isPending && <Loading what="the agents" />}
      {agents.isError && <ErrorBox error={agents.error} onRetry={() => void agents.refetch()} />}
      {agents.data?.length === 0 && (
        <p className="text-[13px] text-muted">
          This server has no agents. Configure some in <code className="font-mono">tapedeck.toml</code> and start it
          again.
        </p>
      )}
      {agents.data && agents.data.length > 0 && <Form agents={agents.data} onClose={onClose} onStarted={onStarted} />}
    </Dialog>
  );
}

interface FormProps {
  agents: Agent[];
  onClose: () => void;
  onStarted: (id: string) => void;
}

function Form({ agents, onClose, onStarted }: FormProps) {
  const ready = agents.filter((a) => !a.unavailable);
  const [task, setTask] = useState(() => sessionStorage.getItem(draft) ?? "");
  const [name, setName] = useState(() => {
    const last = remembered.get(lastAgent);
    return ready.find((a) => a.name === last)?.name ?? ready[0]?.name ?? "";
  });
  const [model, setModel] = useState("");
  const [folder, setFolder] = useState("");
  const [title, setTitle] = useState("");
  const [tried, setTried] = useState(false);
  const agent = ready.find((a) => a.name === name);
  const queries = useQueryClient();
  const start = useMutation({
    mutationFn: () =>
      startSession({
        task: task.trim(),
        agent: name,
        title,
        ...(agent?.models?.includes(model) ? { model } : {}),
        ...(agent?.folders?.includes(folder) ? { folder } : {}),
      }),
    onSuccess: (id) => {
      sessionStorage.removeItem(draft);
      remembered.set(lastAgent, name);
      void queries.invalidateQueries({ queryKey: ["sessions-fresh"] });
      onStarted(id);
    },
  });
  const lacks = task.trim() === "" ? "Write what the agent should do." : agent ? "" : "Choose an agent.";
  const missing = tried ? lacks : "";
  const submit = () => {
    setTried(true);
    if (!lacks && !start.isPending) start.mutate();
  };
  const id = useId();
  const message = useRef<HTMLTextAreaElement>(null);
  useEffect(() => message.current?.focus(), []); // the dialog may have opened before the agents were loaded
  return (
    <form
      className="flex flex-col gap-4 text-[13px]"
      onSubmit={(e) => {
        e.preventDefault();
        submit();
      }}
    >
      <label className="flex flex-col gap-1">
        <span className="font-medium">First message</span>
        <textarea
          ref={message}
          data-first
          rows={4}
          value={task}
          aria-invalid={missing !== "" && task.trim() === ""}
          aria-describedby={missing ? `${id}-missing` : undefined}
          placeholder="What should the agent do?"
          onChange={(e) => {
            setTask(e.target.value);
            sessionStorage.setItem(draft, e.target.value);
          }}
          onKeyDown={(e) => {
            if (e.key !== "Enter" || e.shiftKey || e.nativeEvent.isComposing || !enterStarts()) return;
            e.preventDefault();
            submit();
          }}
          className={`${field} h-auto resize-y py-1.5 text-sm`}
        />
      </label>
      <Agents agents={agents} name={name} onChange={setName} />
      {agent?.models && (
        <Choice label="Model" value={model || agent.models[0] || ""} options={agent.models} onChange={setModel} />
      )}
      {agent?.folders && (
        <Choice
          label="Folder"
          value={folder}
          options={agent.folders}
          first="The agent's own folder"
          onChange={setFolder}
        />
      )}
      <label className="flex flex-col gap-1">
        <span className="font-medium">
          Title <span className="font-normal text-muted">(optional)</span>
        </span>
        <input
          className={field}
          value={title}
          maxLength={200}
          placeholder="The first line of the message"
          onChange={(e) => setTitle(e.target.value)}
        />
      </label>
      {missing && (
        <p id={`${id}-missing`} role="alert" className="text-bad">
          {missing}
        </p>
      )}
      {start.isError && <ErrorBox error={start.error} />}
      <div className="flex flex-wrap items-center justify-end gap-2">
        <span className="mr-auto text-muted pointer-coarse:hidden">Enter starts, Shift+Enter makes a new line</span>
        <Button look="ghost" onClick={onClose}>
          Cancel
        </Button>
        <Button look="primary" type="submit" icon="send" busy={start.isPending}>
          Start
        </Button>
      </div>
    </form>
  );
}

interface AgentsProps {
  agents: Agent[];
  name: string;
  onChange: (name: string) => void;
}

function Agents({ agents, name, onChange }: AgentsProps) {
  return (
    <fieldset>
      <legend className="mb-1 font-medium">Agent</legend>
      <div className="flex max-h-56 flex-col overflow-y-auto rounded-md border border-field">
        {agents.map((a) => (
          <label
            key={a.name}
            className={`flex items-start gap-2.5 border-b border-line px-3 py-2 last:border-b-0 has-checked:bg-accent-soft has-focus-visible:outline-2 has-focus-visible:-outline-offset-2 pointer-coarse:min-h-11 ${a.unavailable ? "opacity-70" : "cursor-pointer hover:bg-raised"}`}
          >
            <input
              type="radio"
              name="agent"
              className="mt-0.5"
              checked={a.name === name}
              disabled={!!a.unavailable}
              onChange={() => onChange(a.name)}
            />
            <span className="min-w-0 flex-1">
              <span className="font-medium">{a.name}</span> <span className="text-xs text-muted">{a.kind}</span>
              {a.description && <span className="block text-muted [overflow-wrap:anywhere]">{a.description}</span>}
              {a.unavailable && (
                <span className="block text-warn [overflow-wrap:anywhere]">It cannot run here: {a.unavailable}.</span>
              )}
            </span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  options: string[];
  /** The name of the choice of none. */
  first?: string;
  onChange: (v: string) => void;
}

function Choice({ label, value, options, first, onChange }: ChoiceProps) {
  return (
    <label className="flex flex-col gap-1">
      <span className="font-medium">{label}</span>
      <select className={field} value={value} onChange={(e) => onChange(e.target.value)}>
        {first && <option value="">{first}</option>}
        {options.map((o) => (
          <option key={o}>{o}</option>
        ))}
      </select>
    </label>
  );
}
