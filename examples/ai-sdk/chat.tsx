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
  const [text, setText] = useState("");
  const [refusal, setRefusal] = useState("");
  const { stop, connection } = useTapedeckSync(chat, transport, {
    onUnsent({ message, error }) {
      setText(message.parts.map((part) => (part.type === "text" ? part.text : "")).join(""));
      setRefusal(`Not sent: ${error.message}`);
    },
  });
  const busy = chat.status === "submitted" || chat.status === "streaming";

  function send(e: FormEvent) {
    e.preventDefault();
    void chat.sendMessage({ text });
    setText("");
    setRefusal("");
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
        <button type="submit" disabled={text === "" || busy}>
          Send
        </button>
        <button type="button" onClick={() => void stop()}>
          Stop
        </button>
      </form>
      {refusal && <p role="alert">{refusal}</p>}
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
