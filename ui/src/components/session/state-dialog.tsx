import type { Json } from "@tapedeck/client";
import { useState } from "react";
import { answererOf, type Choice, useAgents, useChoice } from "@/hooks/agents";
import { type ForkRun, useForkRun } from "@/hooks/fork-run";
import { AgentPicker } from "../agent-picker";
import { pretty } from "../json";
import { Button, Dialog, ErrorBox, field } from "../ui";
import { readJson } from "./read-json";

interface Props {
  id: string;
  title?: string;
  /** The fork shares the events before this offset. */
  at: number;
  /** The shared state there; absent if there is none. */
  value?: Json;
  /** The agent that answered last. */
  last?: string;
  /** The agent of the session. */
  own?: string;
  onClose: () => void;
  onDone: (fork: string) => void;
}

/** Changes the shared state in a fork that leaves at this moment, and runs an agent there if the user wants. */
export function StateDialog({ id, title, at, value, last, own, onClose, onDone }: Props) {
  const [before] = useState(() => pretty(value ?? {})); // the session may go on meanwhile
  const [text, setText] = useState(before);
  const [task, setTask] = useState("");
  const [here] = useChoice(id);
  const [choice, choose] = useState<Choice | undefined>(here);
  const [tried, setTried] = useState(false);
  const agents = useAgents();
  const chosen = answererOf({ choice, last, own, agents: agents.data });
  const run = useForkRun(id, onDone);
  const read = readJson(text);
  const asks = task.trim() !== "";
  const changed = value === undefined || (read.problem === undefined && pretty(read.value) !== before);
  const lacks =
    !changed && !asks ? "Change the state, or write a message." : whoLacks(asks, chosen.agent !== undefined);
  const missing = tried ? lacks : "";
  const submit = () => {
    if (read.problem !== undefined) return; // said below the field
    setTried(true);
    if (lacks) return;
    const todo: ForkRun = { at, title: `${title || id} (changed state)` };
    if (changed) todo.state = { value: read.value };
    if (asks && chosen.agent) {
      const by = { agent: chosen.agent.name, ...(chosen.model ? { model: chosen.model } : {}) };
      todo.task = { text: task.trim(), by };
    }
    run.mutate(todo);
  };
  return (
    <Dialog title="Change the state in a fork" wide onClose={onClose}>
      <form
        className="flex flex-col gap-3 text-[13px]"
        onSubmit={(e) => {
          e.preventDefault();
          submit();
        }}
      >
        <p className="text-muted">
          A fork begins at this moment, before event {at}, with the state below. This session does not change.
        </p>
        <label className="flex flex-col gap-1">
          <span className="text-muted">Shared state, as JSON</span>
          <textarea
            data-first
            rows={10}
            spellCheck={false}
            aria-invalid={read.problem !== undefined || undefined}
            aria-describedby={read.problem === undefined ? undefined : "state-problem"}
            className={`${field} h-auto max-h-[50vh] resize-y py-1.5 font-mono text-xs`}
            value={text}
            onChange={(e) => setText(e.target.value)}
          />
        </label>
        {read.problem !== undefined && (
          <p id="state-problem" role="alert" className="text-bad [overflow-wrap:anywhere]">
            {read.problem}
          </p>
        )}
        <label className="flex flex-col gap-1">
          <span className="text-muted">Message for the agent, if it shall run there</span>
          <textarea
            rows={2}
            className={`${field} h-auto resize-y py-1.5 text-sm`}
            value={task}
            onChange={(e) => setTask(e.target.value)}
          />
        </label>
        {asks && <AgentPicker id="state-agent" agents={agents.data ?? []} answerer={chosen} onChoose={choose} />}
        {missing && (
          <p role="alert" className="text-bad">
            {missing}
          </p>
        )}
        {run.isError && <ErrorBox error={run.error} />}
        <div className="flex justify-end gap-2">
          <Button look="ghost" onClick={onClose}>
            Cancel
          </Button>
          <Button
            look="primary"
            type="submit"
            icon="fork"
            busy={run.isPending || (asks && agents.isPending)}
            disabled={read.problem !== undefined}
          >
            {asks ? "Fork and run" : "Fork"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

const whoLacks = (asks: boolean, has: boolean) => (asks && !has ? "Choose who answers." : "");
