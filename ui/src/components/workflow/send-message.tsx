import { useMutation } from "@tanstack/react-query";
import { useId, useState } from "react";
import { api } from "@/client";
import { objectIn } from "../form/values";
import { Button, ErrorBox } from "../ui";

interface Props {
  id: string;
  thread: string;
  name: string;
  correlation?: string;
  refused?: string;
}

/** Sends the message that an element waits for. */
export function SendMessage({ id, thread, name, correlation, refused }: Props) {
  const field = useId();
  const [text, setText] = useState("");
  const send = useMutation({
    mutationFn: async () => api.message(id, { name, correlation, thread, variables: objectIn(text) }),
  });
  return (
    <form
      className="mt-2 flex flex-col gap-2"
      onSubmit={(e) => {
        e.preventDefault();
        send.mutate();
      }}
    >
      <label htmlFor={field} className="text-xs text-muted">
        Variables that come with it, as a JSON object (optional)
      </label>
      <textarea
        id={field}
        rows={2}
        value={text}
        onChange={(e) => setText(e.target.value)}
        placeholder='{"paid": true}'
        className="rounded-md border border-line bg-bg px-2 py-1 font-mono text-xs"
      />
      {send.isError && <ErrorBox error={send.error} />}
      <Button
        type="submit"
        icon="send"
        busy={send.isPending}
        disabled={refused !== undefined}
        title={refused && `Cannot send: ${refused}`}
        className="self-start max-sm:h-11"
      >
        Send this message
      </Button>
    </form>
  );
}
