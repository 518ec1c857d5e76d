import { useMutation } from "@tanstack/react-query";
import type { ReplayIndex } from "@tapedeck/client";
import { useCallback } from "react";
import { api } from "@/client";
import { undoesOf } from "@/components/conversation/rows";
import { copyText } from "./clipboard";
import { useForget } from "./forget";

/** The actions of the session page that need no dialog. */
export function useVerbs(
  id: string,
  live: boolean,
  closed: boolean,
  index: ReplayIndex | undefined,
  notify: (text: string) => void,
  onRewind: (invocation: string) => void,
  connected?: boolean,
) {
  const first = index?.invocations[0]?.invocation; // nothing comes before it to rewind to
  const undo = useMutation({
    mutationFn: (marker?: string) => api.undo(id, marker),
    onSuccess: (answer, marker) => {
      const redo = marker === undefined && undoesOf(index?.markers ?? []).get(answer.to_offset) === "undo";
      notify(redo ? "Reverted again. Undo restores it." : "Restored");
    },
  });
  const clear = useMutation({
    mutationFn: (t: string) => api.clear(id, t),
    onSuccess: () => notify("Cleared. Undo restores it."),
  });
  const mark = useMutation({
    mutationFn: (offset: number) => api.append(id, { type: "bookmark.added", data: { offset } }),
    onSuccess: () => notify("Bookmark set"),
  });
  useForget([undo, clear, mark], index?.markers.length, connected);
  const link = useCallback(
    (offset: number) => {
      const url = new URL(location.href);
      url.searchParams.set("at", String(offset));
      copyText(url.href).then(
        () => notify("Link copied"),
        (error: Error) => notify(error.message),
      );
    },
    [notify],
  );
  const rewindDisabledReason = useCallback(
    (invocation?: string) => {
      if (closed) return "the session is closed";
      if (!live) return "go live first";
      if (!invocation) return "this row belongs to no turn";
      if (invocation === first) return "there is nothing before the first turn";
      return undo.isPending ? "another change is in progress" : undefined;
    },
    [closed, live, first, undo.isPending],
  );
  const rewind = useCallback(
    (invocation?: string) => {
      const reason = rewindDisabledReason(invocation);
      if (reason) notify(`Cannot rewind to here: ${reason}`);
      else if (invocation) onRewind(invocation);
    },
    [rewindDisabledReason, notify, onRewind],
  );
  return { undo, clear, mark, link, rewind, rewindDisabledReason };
}
