import { memo, useMemo } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import remend from "remend";
import { blocksOf } from "./blocks";

// What agents write is not trusted: HTML stays text, links go only where people
// expect, and pictures are not loaded but named.
const parts: Components = {
  a: ({ href, children }) =>
    href && /^(https?:|mailto:)/i.test(href) ? (
      <a href={href} target="_blank" rel="noopener noreferrer nofollow">
        {children}
      </a>
    ) : (
      <span>{children}</span>
    ),
  img: ({ src, alt }) => (
    <span className="rounded border border-line px-1 text-muted">
      picture{alt ? `: ${alt}` : ""} {typeof src === "string" ? src.slice(0, 200) : ""}
    </span>
  ),
  input: ({ checked }) => <span>{checked ? "☑" : "☐"}</span>,
  // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
  pre: ({ children }) => <pre tabIndex={0}>{children}</pre>,
};
const plugins = [remarkGfm];

const Block = memo(function Block({ text }: { text: string }) {
  return (
    <ReactMarkdown remarkPlugins={plugins} components={parts} skipHtml={false}>
      {text}
    </ReactMarkdown>
  );
});

/** Text as Markdown. While it streams, only its last block is read again. */
export default function Markdown({ text, streaming }: { text: string; streaming: boolean }) {
  const blocks = useMemo(() => blocksOf(text), [text]);
  return (
    <div className="prose">
      {blocks.map((b, i) => (
        // Blocks do not change places: the text only grows.
        // biome-ignore lint/suspicious/noArrayIndexKey: see above
        <Block key={i} text={streaming && i === blocks.length - 1 ? remend(b) : b} />
      ))}
    </div>
  );
}
