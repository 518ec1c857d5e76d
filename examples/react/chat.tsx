import type { Permission } from "@tapedeck/client";
import { useSession } from "@tapedeck/react";
import { type FormEvent, useState } from "react";

/** A chat: what was said, what the agent asks, and a field for the next task. A reload loses nothing. */
export function Chat({ id }: { id: string }) {
  const { messages, toolCalls, permissions, status, connection, error, submit, stop, answer } = useSession(id);
  const [text, setText] = useState("");
  const [failed, setFailed] = useState<unknown>();

  async function send(e: FormEvent) {
    e.preventDefault();
    try {
      await submit(text);
      setText("");
    } catch (err) {
      setFailed(err);
    }
  }
  const items = [...messages, ...toolCalls].sort((a, b) => a.offset - b.offset);
  return (
    <main>
      <p role="status">{connection.error?.message ?? `${status ?? "loading"}, ${connection.state}`}</p>
      <ol aria-label="Conversation">
        {items.map((item) => (
          <li key={item.offset}>
            {"role" in item ? `${item.role}: ${item.text}` : `tool ${item.name}: ${item.status}`}
          </li>
        ))}
      </ol>
      {permissions.map((p) => (
        <Question key={p.id} permission={p} onAnswer={(option) => answer(p, option).catch(setFailed)} />
      ))}
      {[error, failed].map((e) => e instanceof Error && <p key={e.message}>{e.message}</p>)}
      <form onSubmit={send}>
        <input aria-label="Task" value={text} onChange={(e) => setText(e.target.value)} />
        {status === "running" ? (
          <button type="button" onClick={() => void stop().catch(setFailed)}>
            Stop
          </button>
        ) : (
          <button type="submit" disabled={text === ""}>
            Send
          </button>
        )}
      </form>
    </main>
  );
}

function Question({ permission, onAnswer }: { permission: Permission; onAnswer: (option: string) => void }) {
  return (
    <fieldset>
      <legend>{permission.message ?? "May the agent do this?"}</legend>
      {permission.options.map((o) => (
        <button key={o.id} type="button" onClick={() => onAnswer(o.id)}>
          {o.name ?? o.id}
        </button>
      ))}
    </fieldset>
  );
}
