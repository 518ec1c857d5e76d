import { type RefObject, useCallback, useEffect, useMemo, useRef } from "react";
import type { Language } from "./language";
import { canPaint, type Place, paint } from "./paint";
import { tokenizer } from "./tokens";

/**
 * Highlights code on the page, some time after it is rendered. `places` returns its
 * parts on the page; it must stay the same function while these do not change.
 */
export function useColours(text: string, language: Language | undefined, places: () => Place[]): void {
  useEffect(() => {
    if (!language || !canPaint) return;
    const abort = new AbortController();
    let clean: (() => void) | undefined;
    void tokenizer.tokenize(text, language, abort.signal).then((tokens) => {
      if (tokens && !abort.signal.aborted) clean = paint(tokens, places());
    });
    return () => {
      abort.abort();
      clean?.();
    };
  }, [text, language, places]);
}

/** Highlights the text of an element that contains only text. */
export function useColouredText<E extends HTMLElement>(
  text: string,
  language: Language | undefined,
): RefObject<E | null> {
  const ref = useRef<E>(null);
  const { code, lines } = useMemo(() => withoutNumbers(language ? text : ""), [text, language]);
  const places = useCallback(() => {
    const node = ref.current?.firstChild;
    return node instanceof Text ? lines.map((l) => ({ node, ...l })) : [];
  }, [lines]);
  useColours(code, language, places);
  return ref;
}

/**
 * Removes line numbers, which tools often print before each line. Returns the code
 * without them, and the position of each of its lines in the original text.
 */
export function withoutNumbers(text: string): { code: string; lines: Omit<Place, "node">[] } {
  const lines = text.split("\n");
  const numbers = lines.map((l) => /^\s*\d+(?:[:|→\t]|\s\s)\s?/.exec(l)?.[0].length ?? 0);
  const numbered = numbers.filter((n) => n > 0).length;
  if (numbered === 0 || numbered < lines.filter((l) => l !== "").length * 0.8)
    return { code: text, lines: [{ at: 0, from: 0, to: text.length }] };
  let [at, from] = [0, 0];
  const places = lines.map((l, i) => {
    const n = numbers[i] as number;
    const place = { at: at + n, from, to: from + l.length - n };
    at += l.length + 1;
    from = place.to + 1;
    return place;
  });
  return { code: lines.map((l, i) => l.slice(numbers[i])).join("\n"), lines: places };
}
