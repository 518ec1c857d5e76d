import { type RefObject, useEffect } from "react";
import { highlightPattern } from "@/data/find";

const all = "found";
const one = "found-here";
/** Of a text no more is marked than anybody sees. */
const most = 500;

/**
 * Marks what was found in the rows that are on the page. The marks are the
 * browser's (CSS.highlights): no element is made, so neither React nor a
 * policy without inline styles is in their way.
 */
export function useFindMarks(root: RefObject<HTMLElement | null>, q: string | undefined, offset?: number): void {
  useEffect(() => {
    const el = root.current;
    const words = q === undefined ? undefined : highlightPattern(q);
    if (!el || !words || !("highlights" in CSS)) return;
    let frame = 0;
    let moves = 8; // rows are measured when they come, and move what is below
    const paint = () => {
      frame = 0;
      const [ranges, here] = rangesIn(el, words, offset);
      CSS.highlights.set(all, new Highlight(...ranges));
      CSS.highlights.set(one, new Highlight(...here));
      if (here[0] && moves > 0) {
        moves--;
        bringIntoSight(here[0]);
      }
    };
    const soon = () => {
      frame ||= requestAnimationFrame(paint);
    };
    const watch = new MutationObserver(soon);
    watch.observe(el, { childList: true, characterData: true, subtree: true });
    soon();
    return () => {
      watch.disconnect();
      cancelAnimationFrame(frame);
      CSS.highlights.delete(all);
      CSS.highlights.delete(one);
    };
  }, [root, q, offset]);
}

function rangesIn(root: HTMLElement, words: RegExp, offset?: number): [all: Range[], here: Range[]] {
  const out: [Range[], Range[]] = [[], []];
  for (const row of root.querySelectorAll<HTMLElement>("[data-offset]")) {
    const list = out[row.dataset.offset === String(offset) ? 1 : 0];
    const texts = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
    for (let node = texts.nextNode(); node && list.length < most; node = texts.nextNode()) {
      for (const m of (node.nodeValue ?? "").matchAll(words)) {
        const range = document.createRange();
        range.setStart(node, m.index);
        range.setEnd(node, m.index + m[0].length);
        list.push(range);
      }
    }
  }
  return out;
}

function bringIntoSight(range: Range): void {
  const box = range.getBoundingClientRect();
  for (let el = range.startContainer.parentElement; el; el = el.parentElement) {
    if (el.scrollHeight <= el.clientHeight || !/auto|scroll/.test(getComputedStyle(el).overflowY)) continue;
    const { top, bottom } = el.getBoundingClientRect();
    if (box.top < top || box.bottom > bottom) el.scrollTop += box.top - (top + bottom) / 2;
    if (el.ariaLabel === "Conversation") return;
  }
}
