import { type RefObject, useCallback, useMemo } from "react";
import type { Language } from "./language";
import type { Place } from "./paint";
import { useColours } from "./use-colours";

interface Line {
  op: string;
  text: string;
}

/** Colours the lines of a change, of which each is an element whose last part is its text: each side is code on its own. */
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

/** One side has the lines of its own and those that are on both; these are coloured as they are after the change. */
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
