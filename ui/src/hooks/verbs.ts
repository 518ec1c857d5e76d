import { useMutation } from "@tanstack/react-query";
import { useCallback } from "react";
import { api } from "@/data/api";

/**
 * What is done to a session from its page, beside what a dialog asks for first.
 * `first` is its first invocation: there is nothing to rewind to before it.
 */
export function useVerbs(
  id: string,
  live: boolean,
  closed: boolean,
  first: string | undefined,
  say: (text: string) => void,
  onRewind: (invocation: string) => void,
) {
  const undo = useMutation({
    mutationFn: (marker?: string) => api.undo(id, marker),
    onSuccess: () => say("It is back"),
  });
  const clear = useMutation({
    mutationFn: (t: string) => api.clear(id, t),
    onSuccess: () => say("Cleared; Undo brings it back"),
  });
  const mark = useMutation({
    mutationFn: (offset: number) => api.append(id, { type: "bookmark.added", data: { offset } }),
    onSuccess: () => say("A bookmark is set"),
  });
  const link = useCallback(
    (offset: number) => {
      const url = new URL(location.href);
      url.searchParams.set("at", String(offset));
      void navigator.clipboard?.writeText(url.href).then(
        () => say("The link is copied"),
        () => say("The browser does not let the link be copied"),
      );
    },
    [say],
  );
  const noRewind = useCallback(
    (invocation?: string) => {
      if (closed) return "the session is closed";
      if (!live) return "go live first";
      if (!invocation) return "it belongs to no turn";
      if (invocation === first) return "there is nothing before the first turn";
      return undo.isPending ? "wait for what is under way" : undefined;
    },
    [closed, live, first, undo.isPending],
  );
  const rewind = useCallback(
    (invocation?: string) => {
      const not = noRewind(invocation);
      if (not) say(`It cannot be rewound to here: ${not}`);
      else if (invocation) onRewind(invocation);
    },
    [noRewind, say, onRewind],
  );
  return { undo, clear, mark, link, rewind, noRewind };
}
