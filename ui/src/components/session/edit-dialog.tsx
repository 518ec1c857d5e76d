import type { Message } from "@tapedeck/client";
import { useState } from "react";
import { anotherOf, answererOf, useAgents, useChoice } from "@/hooks/agents";
import { useForkRun } from "@/hooks/fork-run";
import { AgentPicker } from "../agent-picker";
import { brief } from "../format";
import { Button, Dialog, ErrorBox, field } from "../ui";

interface Props {
  id: string;
  title?: string;
  message: Message;
  /** Keeps the words, and proposes another agent. */
  again?: boolean;
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
export function EditDialog({ id, title, message, again, at, last, own, onClose, onDone }: Props) {
  const [text, setText] = useState(message.text);
  const [here] = useChoice(id);
  const [picked, choose] = useState(again ? undefined : here);
  const [tried, setTried] = useState(false);
  const agents = useAgents();
  const answered = last ?? own;
  const other = again ? anotherOf(agents.data, answered) : undefined;
  const choice = picked ?? (other && { agent: other.name });
  const chosen = answererOf({ choice, last, own, agents: agents.data });
  const thread = message.thread === "main" ? undefined : message.thread;
  const run = useForkRun(id, onDone);
  const lacks = text.trim() === "" ? "The message is empty." : chosen.agent ? "" : "Choose who answers.";
  const missing = tried ? lacks : "";
  const submit = () => {
    setTried(true);
    if (!chosen.agent || lacks) return;
    const by = { agent: chosen.agent.name, ...(chosen.model ? { model: chosen.model } : {}) };
    run.mutate({
      at,
      title: titleOf(title || id, text, again ? by.agent : ""),
      task: { text: text.trim(), thread, by },
    });
  };
  return (
    <Dialog title={again ? "Run again from here with another agent" : "Edit and run again"} onClose={onClose}>
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
        {again ? (
          <blockquote className="max-h-40 overflow-y-auto rounded-md bg-user-soft px-3 py-2 text-sm whitespace-pre-wrap [overflow-wrap:anywhere]">
            {text}
          </blockquote>
        ) : (
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
        )}
        <AgentPicker id="edit-agent" agents={agents.data ?? []} answerer={chosen} onChoose={choose} />
        {again && <Before answered={answered} alone={agents.data !== undefined && !other} />}
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
          <Button look="primary" type="submit" icon="fork" busy={run.isPending || agents.isPending}>
            Fork and run
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** The title of the fork says whose answer or which words are new there. */
function titleOf(title: string, text: string, agent: string): string {
  return agent ? `${title} (${agent})` : `${title}: ${brief(text, 60)}`;
}

/** Says who answered before, and that there is nobody else. */
function Before({ answered, alone }: { answered?: string; alone: boolean }) {
  return (
    <p className="text-muted">
      {answered ? `${answered} answered here. ` : ""}
      {alone
        ? "This server has no other agent that can run."
        : "The head of the fork has a link that compares both answers."}
    </p>
  );
}
