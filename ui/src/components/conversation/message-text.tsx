import type { Message } from "@tapedeck/client";
import { Suspense, useState } from "react";
import { lazyPart } from "@/components/lazy-part";
import { short } from "../format";

const loadMarkdown = () => import("../markdown");
const Markdown = lazyPart(loadMarkdown);
// It begins to load with the page, before there is a text to show. A failure is tried again by lazyPart.
void loadMarkdown().catch(() => undefined);

/** A longer text is cut: to parse megabytes of Markdown takes a browser minutes. */
export const maxText = 100_000;

/** The text of a message. Of a long one the beginning is shown, and while it streams the end. */
export function MessageText({ message: m }: { message: Message }) {
  const [all, setAll] = useState(false);
  const streaming = m.status === "running";
  const long = m.text.length > maxText;
  const text = long && !all ? cut(m.text, streaming) : m.text;
  return (
    <>
      {m.role === "user" || m.role === "tool" || (long && all) ? (
        <Plain text={text} />
      ) : (
        <Suspense fallback={<Plain text={text} hidden />}>
          <Markdown text={text} streaming={streaming} />
        </Suspense>
      )}
      {long && !all && (
        <p className="mt-2 text-[13px] text-muted">
          The {streaming ? "last" : "first"} {short(maxText)} characters are shown.{" "}
          <button
            type="button"
            className="text-accent pointer-coarse:min-h-11 hover:underline"
            onClick={() => setAll(true)}
          >
            Show all {short(m.text.length)} as plain text
          </button>
        </p>
      )}
    </>
  );
}

/** Never in the middle of a character that takes two units. */
function cut(text: string, end: boolean): string {
  const part = end ? text.slice(-maxText) : text.slice(0, maxText);
  return end ? part.replace(/^[\uDC00-\uDFFF]/, "") : part.replace(/[\uD800-\uDBFF]$/, "");
}

function Plain({ text, hidden }: { text: string; hidden?: boolean }) {
  return (
    <p dir="auto" className={`${hidden ? "invisible" : ""} whitespace-pre-wrap [overflow-wrap:anywhere]`}>
      {text}
    </p>
  );
}
