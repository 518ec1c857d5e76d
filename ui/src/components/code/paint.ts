import { kinds } from "./kinds";
import { maxTokens, type Tokens } from "./tokens";

// Colours without elements (CSS Custom Highlight API): the page passes ranges of the
// text to the browser. So line heights and text never change, and a page with
// much code has no more elements than one without.

export const canPaint = typeof CSS !== "undefined" && "highlights" in CSS && typeof StaticRange !== "undefined";

let all: Highlight[] | undefined;

/** One Highlight for each kind. The rules are not in app.css because its compiler does not support highlights yet. */
function highlights(): Highlight[] {
  if (all) return all;
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(kinds.map((k) => `::highlight(code-${k}) { color: var(--code-${k}); }`).join("\n"));
  document.adoptedStyleSheets.push(sheet);
  all = kinds.map(() => new Highlight());
  for (const [i, h] of all.entries()) CSS.highlights.set(`code-${kinds[i]}`, h);
  return all;
}

/** A part of a text on the page: [from, to) of the text starts at character `at` of the node. */
export interface Place {
  node: Text;
  at: number;
  from: number;
  to: number;
}

/** Colours a text on the page. Call the returned function to remove the colours. */
export function paint(tokens: Tokens, places: Place[]): () => void {
  const painted: [Highlight, AbstractRange][] = [];
  let p = 0;
  for (let i = 0; i < tokens.length && painted.length < maxTokens; i += 3) {
    const [from, to, kind] = [tokens[i]!, tokens[i + 1]!, tokens[i + 2]!];
    while (p < places.length && places[p]!.to <= from) p++;
    for (let q = p; q < places.length && places[q]!.from < to; q++) {
      const { node, at, from: first, to: last } = places[q]!;
      const begin = at + Math.max(from, first) - first;
      const end = at + Math.min(to, last) - first;
      if (end > node.length || begin >= end) continue;
      const range = new StaticRange({ startContainer: node, startOffset: begin, endContainer: node, endOffset: end });
      const h = highlights()[kind]!;
      h.add(range);
      painted.push([h, range]);
    }
  }
  return () => {
    for (const [h, range] of painted) h.delete(range);
  };
}
