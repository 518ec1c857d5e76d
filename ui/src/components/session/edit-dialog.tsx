import { useMutation } from "@tanstack/react-query";
import type { Message } from "@tapedeck/client";
import { useState } from "react";
import { api } from "@/client";
import { answererOf, type Choice, rememberChoice, useAgents, useChoice } from "@/hooks/agents";
import { AgentPicker } from "../agent-picker";
import { brief } from "../format";
import { Button, Dialog, ErrorBox, field } from "../ui";

interface Props {
  id: string;
  title?: string;
  message: Message;
  /** The fork shares the events before this offset. */
  at: number;
  /** The agent that answered the message. */
  last?: string;
  /** The agent of the session. */
  own?: string;
  onClose: () => void;
  onDone: (fork: string) => void;
}

/** Runs a message again in a fork that leaves before it: with other words, or by another agent. */
export function EditDialog({ id, title, message, at, last, own, onClose, onDone }: Props) {
  const [text, setText] = useState(message.text);
  const [here] = useChoice(id);
  const [choice, choose] = useState(here);
  const [missing, setMissing] = useState("");
  // A fork whose task was refused is used by the next attempt.
  const [made, setMade] = useState<string>();
  const agents = useAgents();
  const chosen = answererOf({ choice, last, own, agents: agents.data });
  const thread = message.thread === "main" ? undefined : message.thread;
  const run = useMutation({
    mutationFn: async ({ agent, model }: Choice) => {
      const fork = made ?? (await api.fork(id, { at, title: `${title || id}: ${brief(text, 60)}` })).id;
      setMade(fork);
      await api.task(fork, { task: text.trim(), agent, thread, ...(model ? { config: { model } } : {}) });
      rememberChoice(fork, { agent, ...(model ? { model } : {}) });
      return fork;
    },
    onSuccess: onDone,
  });
  const submit = () => {
    const lacks = text.trim() === "" ? "The message is empty." : chosen.agent ? "" : "Choose who answers.";
    setMissing(lacks);
    if (chosen.agent && !lacks)
      run.mutate({ agent: chosen.agent.name, ...(chosen.model ? { model: chosen.model } : {}) });
  };
  return (
    <Dialog title="Edit and run again" onClose={onClose}>
      <form
        className="flex flex-col gap-3 text-[13px]"
        onSubmit={(e) => {
          e.preventDefault();
          submit();
        }}
      >
        <p className="text-muted">
          A fork begins before this message, and the agent answers there. This session does not change. Files that tools
          have changed stay as they are.
        </p>
        <label className="flex flex-col gap-1">
          <span className="text-muted">Message</span>
          <textarea
            data-first
            rows={5}
            className={`${field} h-auto resize-y py-1.5 text-sm`}
            value={text}
            onChange={(e) => setText(e.target.value)}
          />
        </label>
        <AgentPicker id="edit-agent" agents={agents.data ?? []} answerer={chosen} onChoose={choose} />
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
          <Button look="primary" type="submit" icon="fork" busy={run.isPending}>
            Fork and run
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
