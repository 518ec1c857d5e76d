import { useMutation } from "@tanstack/react-query";
import type { SessionEntry } from "@tapedeck/client";
import { useState } from "react";
import { api } from "@/client";
import { plural } from "../format";
import { Button, Dialog, ErrorBox, field } from "../ui";

interface Props {
  id: string;
  title?: string;
  /** The fork shares the events before this offset. */
  at: number;
  onClose: () => void;
  onDone: (made: SessionEntry) => void;
}

export function ForkDialog({ id, title, at, onClose, onDone }: Props) {
  const [name, setName] = useState(`${title || id} (fork)`);
  const fork = useMutation({
    mutationFn: () => api.fork(id, { at, title: name.trim() || undefined }),
    onSuccess: onDone,
  });
  return (
    <Dialog title="Fork here?" onClose={onClose}>
      <form
        className="flex flex-col gap-3 text-[13px]"
        onSubmit={(e) => {
          e.preventDefault();
          fork.mutate();
        }}
      >
        <p>
          The new session shares the first {plural(at, "event")} with this one. This session does not change. The agent
          is not called until you give it a task.
        </p>
        <label className="flex flex-col gap-1">
          <span className="text-muted">Title</span>
          <input className={field} value={name} maxLength={200} onChange={(e) => setName(e.target.value)} />
        </label>
        {fork.isError && <ErrorBox error={fork.error} />}
        <div className="flex justify-end gap-2">
          <Button look="ghost" onClick={onClose}>
            Cancel
          </Button>
          <Button look="primary" type="submit" icon="fork" busy={fork.isPending}>
            Fork
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
