import { Link } from "@tanstack/react-router";
import type { DiffItem, DiffTurn } from "@tapedeck/client";
import { visible } from "../conversation/action";
import { speakerOf } from "../conversation/message";
import { duration } from "../format";
import { statusLabel } from "../status";
import { type Pair, pairsOf } from "./pairs";
import { type Piece, wordDiff } from "./words";

interface Props {
  turn: DiffTurn;
  a: string;
  b: string;
  /** The first turn in which the sides differ. */
  first: boolean;
}

/** One turn of both sides, with matching items side by side. */
export function CompareTurn({ turn: t, a, b, first }: Props) {
  const pairs = pairsOf(t);
  const missing = t.a ? (t.b ? undefined : "b") : "a";
  const firstDifference = first ? pairs.findIndex((p) => p.change || !p.a || !p.b) : -1;
  return (
    <li aria-labelledby={`turn-${t.turn}`} className={first ? "rounded-lg border-2 border-accent p-3" : ""}>
      <h2 id={`turn-${t.turn}`} className="mb-2 text-[13px] font-semibold">
        Turn {t.turn}
        {missing && <span className="font-normal text-muted"> · only in {missing === "a" ? "B" : "A"}</span>}
        {first && <span className="ml-2 rounded-full bg-accent-soft px-2 py-0.5 text-xs">First difference</span>}
        {t.same && <span className="font-normal text-muted"> · the same</span>}
      </h2>
      <div className="flex flex-col gap-1.5">
        {pairs.map((p, i) => (
          <div key={`${p.a?.offset} ${p.b?.offset}`} className="grid grid-cols-2 gap-3">
            <Cell
              id={a}
              pair={p}
              side="a"
              marked={i === firstDifference}
              whole={missing && (i === 0 ? "first" : "later")}
            />
            <Cell
              id={b}
              pair={p}
              side="b"
              marked={i === firstDifference}
              whole={missing && (i === 0 ? "first" : "later")}
            />
          </div>
        ))}
      </div>
    </li>
  );
}

/** Longer texts are cut at this length. */
const maxChars = 4000;

interface CellProps {
  id: string;
  pair: Pair;
  side: "a" | "b";
  marked: boolean;
  /** The turn exists on one side only, and this is its first or a later row. */
  whole?: "first" | "later";
}

function Cell({ id, pair, side, marked, whole }: CellProps) {
  const item = pair[side];
  const other = pair[side === "a" ? "b" : "a"];
  if (!item && whole)
    return whole === "first" ? <p className="px-3 py-2 text-[13px] text-muted">No such turn</p> : <span />;
  if (!item)
    return (
      <p className="rounded-md border border-dashed border-line px-3 py-2 text-[13px] text-muted">
        {other && `Not in ${side === "a" ? "A" : "B"}`}
      </p>
    );
  const only = !other && !whole;
  const look = only || pair.change ? (side === "a" ? "border-bad/50" : "border-ok/50") : "border-line";
  return (
    <div
      className={`min-w-0 rounded-md border bg-panel px-3 py-2 text-[13px] ${look} ${marked ? "outline-2 outline-offset-1 outline-accent" : ""}`}
    >
      <p className="mb-0.5 flex items-baseline gap-2 text-xs text-muted">
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
      : wordDiff(side === "a" ? text : theirs, side === "a" ? theirs : text)[side];
  let left = maxChars;
  return (
    <div
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

/** Not by colour alone: text only in A is struck through, text only in B is underlined. */
function Marked({ text, same, side }: { text: string; same: boolean; side: "a" | "b" }) {
  if (same) return text;
  return side === "a" ? (
    <del className="rounded-sm bg-bad-soft text-bad">{text}</del>
  ) : (
    <ins className="rounded-sm bg-ok-soft text-ok">{text}</ins>
  );
}
