import type { Permission } from "@tapedeck/client";
import { useCallback, useEffect, useRef } from "react";
import type { Row } from "@/components/conversation/rows";
import { useKeys } from "./keys";

/** How many frames to wait for the card of a question, which is drawn after the list has scrolled to it. */
const maxFrames = 60;

/** Moves the focus to the card of a question, so that its keys answer it. */
function focusCard(offset: number, frames = maxFrames): void {
  const card = document.querySelector<HTMLElement>(`[data-ask="${offset}"]`);
  if (card) card.focus({ preventScroll: true });
  else if (frames > 0) requestAnimationFrame(() => focusCard(offset, frames - 1));
}

/**
 * The way to the questions that wait: `q` goes from one to the next, and the address can
 * name one, once for each opening of the page.
 */
export function useQuestions(
  open: readonly Permission[],
  rows: Row[] | undefined,
  asked: number | undefined,
  onRow: (row: Row) => void,
  notify: (text: string) => void,
) {
  const last = useRef<number>(undefined);
  const show = useCallback(
    (offset: number): boolean => {
      const row = rows?.find((r) => r.kind === "ask" && r.offset === offset);
      if (!row) return false;
      last.current = offset;
      onRow(row);
      focusCard(offset);
      return true;
    },
    [rows, onRow],
  );
  const next = () => {
    const after = open.find((p) => p.offset > (last.current ?? -1)) ?? open[0];
    return after ? show(after.offset) : false;
  };
  useKeys({ q: next });

  const done = useRef<number>(undefined);
  useEffect(() => {
    if (asked === undefined || done.current === asked || !rows?.length) return;
    done.current = asked;
    if (!show(asked)) notify("The question of this link is not shown here: it is too old, or was reverted");
  }, [asked, rows, show, notify]);
  return next;
}
