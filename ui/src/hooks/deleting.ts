import { useSyncExternalStore } from "react";
import { api } from "@/client";
import { announce, dismiss } from "./notices";

/** How long a deletion can be undone: the server is called after it. */
export const undoMs = 8000;

/** The sessions that are about to be deleted, or were deleted by this page. Lists leave them out. */
let ids: ReadonlySet<string> = new Set();
const listeners = new Set<() => void>();

function set(to: Iterable<string>): void {
  ids = new Set(to);
  for (const l of listeners) l();
}

export function useDeleting(): ReadonlySet<string> {
  return useSyncExternalStore(
    (l) => {
      listeners.add(l);
      return () => listeners.delete(l);
    },
    () => ids,
  );
}

let pending: { list: string[]; timer: ReturnType<typeof setTimeout> } | undefined;

/** Deletes at once what is still waiting for its undo. */
function flush(): void {
  const now = pending;
  pending = undefined;
  if (!now) return;
  clearTimeout(now.timer);
  void remove(now.list);
}

async function remove(list: string[]): Promise<void> {
  for (const id of list) {
    try {
      await api.remove(id);
    } catch (err) {
      set([...ids].filter((x) => x !== id));
      announce({ text: `${id} was not deleted: ${(err as Error).message}`, bad: true }, undoMs);
    }
  }
}

/**
 * Deletes sessions after some seconds, in which the deletion can be undone. If the page is
 * closed before that, nothing is deleted.
 */
export function deleteSoon(list: string[], title: string): void {
  if (list.length === 0) return;
  flush(); // only the newest deletion can be undone
  set([...ids, ...list]);
  pending = { list, timer: setTimeout(flush, undoMs) };
  announce(
    {
      text: `${title} will be deleted in ${undoMs / 1000} seconds`,
      action: {
        label: "Undo",
        run: () => {
          if (pending?.list !== list) return;
          clearTimeout(pending.timer);
          pending = undefined;
          set([...ids].filter((x) => !list.includes(x)));
          dismiss();
        },
      },
    },
    undoMs,
  );
}
