import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "@/client";
import { Button, Dialog, ErrorBox } from "../ui";

/** A task that was open at that moment, beside the one that was chosen. */
export interface Redone {
  title: string;
  /** A person is asked, no agent works. */
  asks: boolean;
}

interface Props {
  id: string;
  /** The offset at which the element was entered. */
  at: number;
  title: string;
  /** The titles of the other elements that were entered since. */
  later: string[];
  again: Redone[];
  running: boolean;
  onClose: () => void;
  onDone: (text: string) => void;
}

const maxNames = 8;

/** Says what a rewind before an element reverts, and asks for confirmation. */
export function RewindTask({ id, at, title, later: now, again: open, running: runs, onClose, onDone }: Props) {
  // The dialog keeps its subject: the view behind it changes as soon as the rewind is in the log.
  const [{ later, again, running }] = useState({ later: now, again: open, running: runs });
  const [work, asks] = [again.filter((r) => !r.asks), again.filter((r) => r.asks)];
  const rewind = useMutation({
    mutationFn: async (again: boolean) => {
      await api.rewind(id, { to_offset: at });
      if (again) await api.resume(id);
      return again;
    },
    onSuccess: (again) => onDone(again ? "Rewound. The workflow runs again from here." : "Rewound. Undo restores it."),
  });
  return (
    <Dialog title={`Rewind before ${title}?`} onClose={onClose}>
      <div className="flex flex-col gap-3 text-[13px]">
        <p className="[overflow-wrap:anywhere]">
          The workflow returns to where it was before <q className="font-medium">{title}</q>.
        </p>
        <ul className="list-disc pl-5 [overflow-wrap:anywhere]">
          {later.length > 0 && <li>Also reverted: {namesOf(later)}.</li>}
          {work.length > 0 && (
            <li className="font-medium text-warn">
              Not finished at that moment: {namesOf(work.map((r) => r.title))}. If the workflow runs again,{" "}
              {work.length === 1
                ? "this task begins again, and its agent is"
                : "these tasks begin again, and their agents are"}{" "}
              called again.
            </li>
          )}
          {asks.length > 0 && <li>Asked again: {namesOf(asks.map((r) => r.title))}.</li>}
          {running && <li>What runs now is cancelled first.</li>}
          <li>The log keeps everything, and Undo restores it. Changes that tools made outside of the session stay.</li>
        </ul>
        {rewind.isError && <ErrorBox error={rewind.error} />}
        <div className="flex flex-wrap justify-end gap-2">
          <Button look="ghost" onClick={onClose}>
            Cancel
          </Button>
          <Button icon="rewind" busy={rewind.isPending} onClick={() => rewind.mutate(false)}>
            Rewind
          </Button>
          <Button look="primary" icon="play" busy={rewind.isPending} onClick={() => rewind.mutate(true)}>
            Rewind and run again
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

function namesOf(titles: string[]): string {
  const more = titles.length - maxNames;
  return titles.slice(0, maxNames).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
