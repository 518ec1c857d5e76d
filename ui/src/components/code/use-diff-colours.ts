import { type RefObject, useCallback, useMemo } from "react";
import type { Language } from "./language";
import type { Place } from "./paint";
import { useColours } from "./use-colours";

interface Line {
  op: string;
  text: string;
}

/**
 * Highlights the lines of a diff. Each line is an element whose last child is its
 * text. Each side of the diff is highlighted as code of its own.
 */
export function useDiffColours(
  ref: RefObject<HTMLElement | null>,
  lines: Line[],
  language: Language | undefined,
): void {
  const before = useSide(ref, lines, "-");
  const after = useSide(ref, lines, "+");
  useColours(before.text, language, before.places);
  useColours(after.text, language, after.places);
}

/** One side: its own lines and the common ones. The common lines get the colours of the new side. */
function useSide(ref: RefObject<HTMLElement | null>, lines: Line[], op: "-" | "+") {
  const text = useMemo(
    () =>
      lines
        .filter((l) => l.op === op || l.op === " ")
        .map((l) => l.text)
        .join("\n"),
    [lines, op],
  );
  const places = useCallback(() => {
    const out: Place[] = [];
    let from = 0;
    for (const [i, l] of lines.entries()) {
      if (l.op !== op && l.op !== " ") continue;
      const node = ref.current?.children[i]?.lastChild;
      const to = from + l.text.length;
      const wanted = l.op === op || op === "+";
      if (wanted && node instanceof Text && node.data === l.text) out.push({ node, at: 0, from, to });
      from = to + 1;
    }
    return out;
  }, [ref, lines, op]);
  return { text, places };
}
