import { Link } from "@tanstack/react-router";
import type { DiffItem, DiffTurn } from "@tapedeck/client";
import { useState } from "react";
import { visible } from "../conversation/action";
import { speakerOf } from "../conversation/message";
import { duration } from "../format";
import { Icon } from "../icons";
import { statusLabel } from "../status";
import type { Pair } from "./pairs";
import { contentsOf, partsOf, questionOf } from "./parts";
import { type Piece, wordDiff } from "./words";

interface Props {
  turn: DiffTurn;
  a: string;
  b: string;
  /** The first turn in which the sides differ. */
  first: boolean;
}

/** One turn of both sides, with matching items side by side. What is the same is folded. */
export function CompareTurn({ turn: t, a, b, first }: Props) {
  const parts = partsOf(t);
  const missing = t.a ? (t.b ? undefined : "b") : "a";
  const question = questionOf(t);
  const firstDifference = parts.findIndex((p) => p.kind === "differs");
  return (
    <li aria-labelledby={`turn-${t.turn}`}>
      <h2 id={`turn-${t.turn}`} className="mb-2 flex min-w-0 items-baseline gap-2 text-[13px] font-semibold">
        <span className="whitespace-nowrap">
          Turn {t.turn}
          {missing && <span className="font-normal text-muted"> · only in {missing === "a" ? "B" : "A"}</span>}
        </span>
        {first && (
          <span className="rounded-full bg-accent-soft px-2 py-0.5 text-xs whitespace-nowrap">First difference</span>
        )}
        {question && (
          <span dir="auto" className="truncate font-normal text-muted">
            {question}
          </span>
        )}
      </h2>
      <div className="flex flex-col gap-1.5">
        {parts.map((p, i) =>
          p.kind === "same" ? (
            <SamePart key={`same ${p.pairs[0]?.a?.offset}`} pairs={p.pairs} a={a} b={b} />
          ) : (
            <PairRow
              key={`${p.pair.a?.offset} ${p.pair.b?.offset}`}
              pair={p.pair}
              a={a}
              b={b}
              whole={missing && (i === 0 ? "first" : "later")}
              // one stop a turn for a turn that one side lacks
              stop={!missing || i === firstDifference}
            />
          ),
        )}
      </div>
    </li>
  );
}

/** Items that are the same on both sides: one line that unfolds. */
function SamePart({ pairs, a, b }: { pairs: Pair[]; a: string; b: string }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button
        type="button"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        className="flex min-h-8 items-center gap-1.5 rounded-md border border-dashed border-line px-3 text-left text-[13px] text-muted pointer-coarse:min-h-11 hover:bg-raised hover:text-text"
      >
        <Icon name={open ? "down" : "forward"} className="size-3.5" />
        The same: {contentsOf(pairs)}
      </button>
      {open && pairs.map((p) => <PairRow key={`${p.a?.offset} ${p.b?.offset}`} pair={p} a={a} b={b} same />)}
    </>
  );
}

interface RowProps {
  pair: Pair;
  a: string;
  b: string;
  /** The turn exists on one side only, and this is its first or a later row. */
  whole?: "first" | "later";
  /** The buttons for differences stop here. */
  stop?: boolean;
  /** Both sides are the same. A narrow page shows one of them. */
  same?: boolean;
}

function PairRow({ pair, a, b, whole, stop, same }: RowProps) {
  return (
    <div
      data-difference={stop || undefined}
      tabIndex={stop ? -1 : undefined}
      className="grid scroll-mt-28 grid-cols-1 gap-x-3 gap-y-1 rounded-md outline-offset-2 sm:grid-cols-2"
    >
      <Cell id={a} pair={pair} side="a" whole={whole} />
      <div className={same ? "max-sm:hidden" : "contents"}>
        <Cell id={b} pair={pair} side="b" whole={whole} />
      </div>
    </div>
  );
}

/** Longer texts are cut at this length. */
const maxChars = 4000;

interface CellProps {
  id: string;
  pair: Pair;
  side: "a" | "b";
  whole?: "first" | "later";
}

function Cell({ id, pair, side, whole }: CellProps) {
  const item = pair[side];
  const other = pair[side === "a" ? "b" : "a"];
  if (!item && whole)
    return whole === "first" ? (
      <p className="px-3 py-2 text-[13px] text-muted">No such turn in {side === "a" ? "A" : "B"}</p>
    ) : (
      <span className="max-sm:hidden" />
    );
  if (!item)
    return (
      <p className="rounded-md border border-dashed border-line px-3 py-2 text-[13px] text-muted max-sm:py-1">
        {other && `Not in ${side === "a" ? "A" : "B"}`}
      </p>
    );
  const only = !other && !whole;
  const look = only || pair.change ? (side === "a" ? "border-bad/50" : "border-ok/50") : "border-line";
  return (
    <div className={`h-full min-w-0 rounded-md border bg-panel px-3 py-2 text-[13px] ${look}`}>
      <p className="mb-0.5 flex items-baseline gap-2 text-xs text-muted">
        <span className="font-semibold sm:hidden">{side === "a" ? (pair.change || only ? "A" : "A and B") : "B"}</span>
        <Link
          to="/s/$id"
          params={{ id }}
          search={{ at: item.offset + 1 }}
          className={`font-semibold hover:underline ${item.kind === "tool" ? "font-mono" : ""}`}
        >
          {item.kind === "tool" ? visible(item.name) : speakerOf({ role: item.name })}
        </Link>
        {only && <span className="font-medium">only in {side === "a" ? "A" : "B"}</span>}
        <span className="ml-auto tabular-nums">
          {item.kind === "tool" && <Took item={item} other={other} side={side} />}
        </span>
        {item.status !== "complete" && (
          <span className={item.status === "failed" ? "font-medium text-bad" : ""}>
            {item.status === "failed" && "✕ "}
            {statusLabel(item.status).toLowerCase()}
          </span>
        )}
        {item.kind === "tool" && item.status === "complete" && <span className="text-ok">✓ ok</span>}
      </p>
      {item.kind === "tool" ? (
        <>
          <Text item={item} other={other} part="arguments" side={side} mono />
          {item.text && (
            <div className="mt-1 border-t border-line pt-1">
              <Text item={item} other={other} part="text" side={side} mono />
            </div>
          )}
        </>
      ) : (
        <Text item={item} other={other} part="text" side={side} />
      )}
    </div>
  );
}

/** The duration of a call and, on side B, its difference from the other call. */
function Took({ item, other, side }: { item: DiffItem; other?: DiffItem; side: "a" | "b" }) {
  if (item.duration_ms === undefined) return null;
  const more = side === "b" && other?.duration_ms !== undefined ? item.duration_ms - other.duration_ms : 0;
  return (
    <>
      {duration(item.duration_ms)}
      {Math.abs(more) >= 1 && ` (${more > 0 ? "+" : "−"}${duration(Math.abs(more))})`}
    </>
  );
}

interface TextProps {
  item: DiffItem;
  other?: DiffItem;
  part: "text" | "arguments";
  side: "a" | "b";
  mono?: boolean;
}

function Text({ item, other, part, side, mono }: TextProps) {
  const text = item[part] ?? "";
  const theirs = other?.[part];
  const pieces: Piece[] =
    theirs === undefined || theirs === text
      ? [{ text, same: true }]
      : wordDiff(side === "a" ? text : theirs, side === "a" ? theirs : text, leastOf(item))[side];
  let left = maxChars;
  return (
    <div
      dir={mono ? "ltr" : "auto"}
      className={`max-h-80 overflow-y-auto whitespace-pre-wrap [overflow-wrap:anywhere] ${mono ? "font-mono text-xs" : ""}`}
    >
      {pieces.map((p, i) => {
        if (left <= 0) return null;
        const shown = p.text.slice(0, left);
        left -= p.text.length;
        // biome-ignore lint/suspicious/noArrayIndexKey: pieces have no id
        return <Marked key={i} text={shown} same={p.same} side={side} />;
      })}
      {left < 0 && <span className="text-muted">… {(-left).toLocaleString("en")} more characters</span>}
    </div>
  );
}

/** A question of a user was edited, so what is left of its words tells more than two whole questions. */
const leastOf = (item: DiffItem) => (item.kind === "message" && item.name === "user" ? 0.15 : undefined);

/** Not by colour alone: text only in A is struck through, text only in B is underlined. */
function Marked({ text, same, side }: { text: string; same: boolean; side: "a" | "b" }) {
  if (same) return text;
  return side === "a" ? (
    <del className="rounded-sm bg-bad-soft text-bad">{text}</del>
  ) : (
    <ins className="rounded-sm bg-ok-soft text-ok">{text}</ins>
  );
}
