import { useChat } from "@ai-sdk/react";
import type { TapedeckTransport } from "@tapedeck/ai-sdk";
import { useTapedeckSync } from "@tapedeck/ai-sdk/react";
import { isToolUIPart, lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from "ai";
import { type FormEvent, useState } from "react";

interface Props {
  id: string;
  messages: UIMessage[];
  transport: TapedeckTransport;
}

/** A chat. A reload, a second tab and a phone show the same. */
export function Chat({ id, messages, transport }: Props) {
  const chat = useChat({
    id,
    messages,
    resume: true,
    transport,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const { stop, connection } = useTapedeckSync(chat, transport);
  const [text, setText] = useState("");

  function send(e: FormEvent) {
    e.preventDefault();
    void chat.sendMessage({ text });
    setText("");
  }
  return (
    <main>
      <p role="status">{`${chat.error?.message ?? chat.status}, ${connection.state}`}</p>
      <ol aria-label="Conversation">
        {chat.messages.map((m) => (
          <li key={m.id}>
            {`${m.role}: `}
            {m.parts.map((part, i) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: parts have no ids, and only the last one is new
              <Part key={i} part={part} answer={chat.addToolApprovalResponse} />
            ))}
          </li>
        ))}
      </ol>
      <form onSubmit={send}>
        <input aria-label="Message" value={text} onChange={(e) => setText(e.target.value)} />
        <button type="submit" disabled={text === ""}>
          Send
        </button>
        <button type="button" onClick={() => void stop()}>
          Stop
        </button>
      </form>
    </main>
  );
}

type Answer = ReturnType<typeof useChat>["addToolApprovalResponse"];

function Part({ part, answer }: { part: UIMessage["parts"][number]; answer: Answer }) {
  if (part.type === "text") return <span>{part.text}</span>;
  if (!isToolUIPart(part)) return null;
  if (part.state !== "approval-requested") return <span>{` [${part.type} ${part.state}] `}</span>;
  const { id } = part.approval;
  return (
    <fieldset>
      <legend>{`May the agent use ${part.type.slice("tool-".length)}?`}</legend>
      <button type="button" onClick={() => void answer({ id, approved: true })}>
        Yes
      </button>
      <button type="button" onClick={() => void answer({ id, approved: false })}>
        No
      </button>
    </fieldset>
  );
}
