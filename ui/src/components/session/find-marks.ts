import { highlightPattern } from "@tapedeck/client/player";
import { type RefObject, useEffect } from "react";

const hitHighlight = "found";
const currentHighlight = "found-here";
/** The limit of highlighted matches. */
const maxMarks = 500;

/**
 * Highlights the matches in the rows on the page. It uses CSS.highlights and adds no
 * elements, so it does not conflict with React, nor with a policy without inline
 * styles.
 */
export function useFindMarks(root: RefObject<HTMLElement | null>, q: string | undefined, offset?: number): void {
  useEffect(() => {
    const el = root.current;
    const pattern = q === undefined ? undefined : highlightPattern(q);
    if (!el || !pattern || !("highlights" in CSS)) return;
    let frame = 0;
    let moves = 8; // rows are measured after they appear, and then move the rows below
    const paint = () => {
      frame = 0;
      const [ranges, here] = rangesIn(el, pattern, offset);
      CSS.highlights.set(hitHighlight, new Highlight(...ranges));
      CSS.highlights.set(currentHighlight, new Highlight(...here));
      if (here[0] && moves > 0) {
        moves--;
        scrollIntoView(here[0]);
      }
    };
    const schedulePaint = () => {
      frame ||= requestAnimationFrame(paint);
    };
    const watch = new MutationObserver(schedulePaint);
    watch.observe(el, { childList: true, characterData: true, subtree: true });
    schedulePaint();
    return () => {
      watch.disconnect();
      cancelAnimationFrame(frame);
      CSS.highlights.delete(hitHighlight);
      CSS.highlights.delete(currentHighlight);
    };
  }, [root, q, offset]);
}

function rangesIn(root: HTMLElement, pattern: RegExp, offset?: number): [all: Range[], here: Range[]] {
  const out: [Range[], Range[]] = [[], []];
  for (const row of root.querySelectorAll<HTMLElement>("[data-offset]")) {
    const list = out[row.dataset.offset === String(offset) ? 1 : 0];
    const texts = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
    for (let node = texts.nextNode(); node && list.length < maxMarks; node = texts.nextNode()) {
      for (const m of (node.nodeValue ?? "").matchAll(pattern)) {
        const range = document.createRange();
        range.setStart(node, m.index);
        range.setEnd(node, m.index + m[0].length);
        list.push(range);
      }
    }
  }
  return out;
}

function scrollIntoView(range: Range): void {
  const box = range.getBoundingClientRect();
  for (let el = range.startContainer.parentElement; el; el = el.parentElement) {
    if (el.scrollHeight <= el.clientHeight || !/auto|scroll/.test(getComputedStyle(el).overflowY)) continue;
    const { top, bottom } = el.getBoundingClientRect();
    if (box.top < top || box.bottom > bottom) el.scrollTop += box.top - (top + bottom) / 2;
    if (el.ariaLabel === "Conversation") return;
  }
}
