import { memo, type ReactNode, useId, useMemo } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import remend from "remend";
import { blocksOf, hasDefinitions } from "./blocks";
import { languageOf } from "./code/language";
import { useColouredText } from "./code/use-colours";

// Text of an agent is not trusted: HTML stays text, links lead only to http, https
// and mailto, and images are named but not loaded.
const parts: Components = {
  a: ({ href = "", id, children, "aria-label": label, ...rest }) => {
    if (/^(https?:|mailto:)/i.test(href))
      return (
        <a href={href} target="_blank" rel="noopener noreferrer nofollow">
          {children}
        </a>
      );
    // A footnote, and the way back. The page uses the hash of the URL itself.
    if ("data-footnote-ref" in rest || "data-footnote-backref" in rest)
      return (
        <button
          type="button"
          id={id}
          aria-label={label ?? `Footnote ${children}`}
          onClick={() => goTo(href.slice(1))}
          className="text-accent hover:underline"
        >
          {children}
        </button>
      );
    return <span>{children}</span>;
  },
  // Only the label of footnotes has an id. It is the same in each message.
  h6: ({ id, children }) => (id ? <p className="sr-only">{children}</p> : <h6>{children}</h6>),
  img: ({ src, alt }) => (
    <span className="rounded border border-line px-1 text-muted">
      image{alt ? `: ${alt}` : ""} {typeof src === "string" ? src.slice(0, 200) : ""}
    </span>
  ),
  input: ({ checked }) => <span>{checked ? "☑" : "☐"}</span>,
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard
  pre: ({ children }) => <pre tabIndex={0}>{children}</pre>,
};
const plugins = [remarkGfm];

function goTo(id: string): void {
  const target = document.getElementById(id);
  target?.scrollIntoView({ block: "nearest" });
  (target?.querySelector("button") ?? target)?.focus();
}

function Code({ className, children }: { className?: string; children?: ReactNode }) {
  const text = typeof children === "string" ? children : "";
  const ref = useColouredText<HTMLElement>(text, languageOf(/language-(\S+)/.exec(className ?? "")?.[1]));
  return <code ref={ref}>{children}</code>;
}

// A block that still streams is not highlighted: it would be tokenized again with each word.
const completeParts: Components = {
  ...parts,
  code: ({ className, children }) => <Code className={className}>{children}</Code>,
};

const Block = memo(function Block({ text, open }: { text: string; open: boolean }) {
  const id = useId(); // footnotes of different messages have the same names
  const options = useMemo(() => ({ clobberPrefix: `${id}-`, footnoteLabelTagName: "h6" }), [id]);
  return (
    <ReactMarkdown
      remarkPlugins={plugins}
      remarkRehypeOptions={options}
      components={open ? parts : completeParts}
      skipHtml={false}
    >
      {text}
    </ReactMarkdown>
  );
});

/**
 * Text as Markdown. While it streams, only the last block is parsed again. A finished
 * text with definitions is one block, because its links and footnotes may be anywhere.
 */
export default function Markdown({ text, streaming }: { text: string; streaming: boolean }) {
  const blocks = useMemo(() => (!streaming && hasDefinitions(text) ? [text] : blocksOf(text)), [text, streaming]);
  const isOpen = (i: number) => streaming && i === blocks.length - 1;
  return (
    <div className="prose">
      {blocks.map((b, i) => (
        // Blocks keep their positions: the text only grows.
        // biome-ignore lint/suspicious/noArrayIndexKey: see above
        <Block key={i} open={isOpen(i)} text={isOpen(i) ? remend(b) : b} />
      ))}
    </div>
  );
}
