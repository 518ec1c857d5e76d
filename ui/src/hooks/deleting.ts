import { useMemo, useSyncExternalStore } from "react";
import { api } from "@/client";
import { announce, dismiss } from "./notices";

/** How long a deletion can be undone: the server is called after it. */
export const undoMs = 8000;

interface Deletable {
  id: string;
  created_at: string;
}

/** The sessions that are about to be deleted, or were deleted by this page. */
let sessions: readonly Deletable[] = [];
const listeners = new Set<() => void>();

function set(to: readonly Deletable[]): void {
  sessions = to;
  for (const l of listeners) l();
}

/** The sessions of a list without those that this page deletes. Another one may have the id of a deleted one. */
export function useUndeleted<S extends Deletable>(list: S[]): S[] {
  const now = useSyncExternalStore(
    (l) => {
      listeners.add(l);
      return () => listeners.delete(l);
    },
    () => sessions,
  );
  return useMemo(() => list.filter((s) => !now.some((d) => same(d, s))), [list, now]);
}

const same = (a: Deletable, b: Deletable) => a.id === b.id && a.created_at === b.created_at;

let pending: { list: Deletable[]; timer: ReturnType<typeof setTimeout> } | undefined;

/** Deletes at once what is still waiting for its undo. */
function flush(): void {
  const now = pending;
  pending = undefined;
  if (!now) return;
  clearTimeout(now.timer);
  void remove(now.list);
}

async function remove(list: Deletable[]): Promise<void> {
  for (const gone of list) {
    try {
      await api.remove(gone.id);
    } catch (err) {
      set(sessions.filter((s) => s !== gone));
      announce({ text: `${gone.id} was not deleted: ${(err as Error).message}`, bad: true }, undoMs);
    }
  }
}

/**
 * Deletes sessions after some seconds, in which the deletion can be undone. If the page is
 * closed before that, nothing is deleted.
 */
export function deleteSoon(list: Deletable[], title: string): void {
  if (list.length === 0) return;
  flush(); // only the newest deletion can be undone
  set([...sessions, ...list]);
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
          set(sessions.filter((s) => !list.includes(s)));
          dismiss();
        },
      },
    },
    undoMs,
  );
}
