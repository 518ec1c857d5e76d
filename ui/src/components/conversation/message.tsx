import type { Message } from "@tapedeck/client";
import { isObject } from "@tapedeck/client/fold";
import { memo } from "react";
import { brief, duration } from "../format";
import { Icon } from "../icons";
import { JsonView } from "../json";
import { MessageText } from "./message-text";

const roles: Record<string, string> = {
  user: "User",
  assistant: "Agent",
  system: "System",
  developer: "Developer",
  tool: "Tool",
  activity: "Activity",
};

/** The displayed name of the author. */
export function speakerOf(m: Pick<Message, "role" | "name" | "actor">): string {
  const name = m.name ?? (m.role === "assistant" ? m.actor?.replace(/^agent:/, "") : undefined);
  return name || roles[m.role] || m.role;
}

interface Props {
  message: Message;
  /** For reasoning: show the whole text. */
  open: boolean;
  onToggle: () => void;
}

export const MessageBody = memo(function MessageBody({ message: m, open, onToggle }: Props) {
  if (m.role === "reasoning") return <Thinking message={m} open={open} onToggle={onToggle} />;
  if (isPrompt(m)) return <Prompt text={m.text} />;
  const streaming = m.status === "running";
  return (
    <div className={`${m.role === "user" ? "rounded-md bg-user-soft px-3 py-2" : ""} ${streaming ? "typing-in" : ""}`}>
      <MessageText message={m} />
      {m.parts !== undefined && <Attached parts={m.parts} />}
      {m.content !== undefined && <JsonView value={m.content} label={m.activity_type ?? "activity"} />}
      <CutOffNote status={m.status} />
    </div>
  );
});

/** Whether a message stores the system prompt of the model. */
function isPrompt(m: Message): boolean {
  const ours = isObject(m.metadata) ? m.metadata.tapedeck : undefined;
  return m.role === "system" && isObject(ours) && typeof ours.prompt === "string";
}

/** The system prompt of the model. It is not addressed to users, so it is folded. */
function Prompt({ text }: { text: string }) {
  return (
    <details className="text-[13px] text-muted">
      <summary className="cursor-pointer hover:text-text">
        {text === "" ? "No system prompt from here on" : "System prompt"}
      </summary>
      <p className="mt-1 whitespace-pre-wrap [overflow-wrap:anywhere]">{text}</p>
    </details>
  );
}

function CutOffNote({ status }: { status: string }) {
  if (status === "cancelled") return <p className="mt-1 text-xs text-muted">■ Cut off: the run was cancelled</p>;
  if (status === "interrupted") return <p className="mt-1 text-xs text-warn">‖ Cut off: the run was interrupted</p>;
  return null;
}

/** The agent's reasoning, folded by default. */
function Thinking({ message: m, open, onToggle }: Props) {
  const streaming = m.status === "running";
  return (
    <div className="text-[13px] text-muted">
      <button
        type="button"
        aria-expanded={open}
        onClick={onToggle}
        className="flex max-w-full items-center gap-1.5 hover:text-text"
      >
        <Icon name={open ? "down" : "forward"} className="size-3.5" />
        <span className="shrink-0 font-medium">{streaming ? "Thinking" : "Thought"}</span>
        {m.duration_ms ? <span className="shrink-0">for {duration(m.duration_ms)}</span> : null}
        {!open && (
          <span className={`truncate italic ${streaming ? "typing" : ""}`}>
            {brief(streaming ? m.text.slice(-160) : m.text, 140)}
          </span>
        )}
      </button>
      {open && (
        <div className="mt-1 border-l-2 border-line pl-3">
          <MessageText message={{ ...m, role: "user" }} />
        </div>
      )}
    </div>
  );
}

/** Parts of a message other than text, as JSON. No image or file is loaded. */
function Attached({ parts }: { parts: Message["parts"] }) {
  const list = Array.isArray(parts) ? parts : [];
  const others = list.filter((p) => p && typeof p === "object" && !Array.isArray(p) && p.type !== "text");
  if (others.length === 0) return null;
  return (
    <details className="mt-1 text-[13px] text-muted">
      <summary>{others.map((p) => String((p as { type?: unknown }).type)).join(", ")}</summary>
      <JsonView value={others} label="Parts of the message" />
    </details>
  );
}
