import type { Diff, DiffItem, DiffTurn } from "@tapedeck/client";
import { visible } from "../conversation/action";
import { brief, plural } from "../format";
import { type Pair, pairsOf } from "./pairs";

/** A part of a turn: items that are the same on both sides, or one pair that differs. */
export type Part = { kind: "same"; pairs: Pair[] } | { kind: "differs"; pair: Pair };

/** The parts of a turn, in order. Neighbours that are the same are one part. */
export function partsOf(turn: DiffTurn): Part[] {
  const parts: Part[] = [];
  for (const pair of pairsOf(turn)) {
    const last = parts.at(-1);
    if (differs(pair)) parts.push({ kind: "differs", pair });
    else if (last?.kind === "same") last.pairs.push(pair);
    else parts.push({ kind: "same", pairs: [pair] });
  }
  return parts;
}

function differs(p: Pair): boolean {
  return p.change !== undefined || !p.a || !p.b;
}

/** How many differences of a turn have a stop: one for a turn that one side lacks. */
export function stopsIn(turn: DiffTurn): number {
  if (!turn.a || !turn.b) return 1;
  return partsOf(turn).filter((p) => p.kind === "differs").length;
}

/** Says what a folded part contains: "2 messages, 1 tool call". */
export function contentsOf(pairs: Pair[]): string {
  const tools = pairs.filter((p) => p.a?.kind === "tool").length;
  const messages = pairs.length - tools;
  return [messages && plural(messages, "message"), tools && plural(tools, "tool call")].filter(Boolean).join(", ");
}

/** The words with which a turn begins on both sides; undefined if they differ. */
export function questionOf(turn: DiffTurn): string | undefined {
  const first = partsOf(turn)[0];
  const item = first?.kind === "same" ? first.pairs[0]?.a : undefined;
  return item?.kind === "message" && item.name === "user" ? brief(item.text ?? "", 120) : undefined;
}

/** Says up to where both sides are the same. */
export function sameUntil(d: Diff): string {
  const turn = d.turns[0];
  if (d.same || !turn) return "Both are identical.";
  if (!turn.a || !turn.b) return `The same until the end of ${turn.a ? "B" : "A"}. Only ${turn.a ? "A" : "B"} goes on.`;
  const first = partsOf(turn)[0];
  const last = first?.kind === "same" ? first.pairs.at(-1)?.a : undefined;
  if (last) return `The same until turn ${turn.turn}, after ${nameOf(last)}.`;
  return turn.turn === 1 ? "They differ from the first turn on." : `The same until turn ${turn.turn}.`;
}

function nameOf(item: DiffItem): string {
  if (item.kind === "tool") return `the call of ${visible(item.name)}`;
  return item.name === "user" ? "the message of the user" : "a message of the agent";
}

/** Whether the first turn that differs begins with what is the same. */
export function beginsTheSame(d: Diff): boolean {
  const turn = d.turns[0];
  return turn !== undefined && partsOf(turn)[0]?.kind === "same";
}

/** The offset of the first item of a side that differs; undefined if its part of the turn is the same. */
export function partingOf(d: Diff, side: "a" | "b"): number | undefined {
  const turn = d.turns[0];
  return turn && pairsOf(turn).find((p) => differs(p) && p[side])?.[side]?.offset;
}
