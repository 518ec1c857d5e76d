import type { Json } from "@tapedeck/client";

export type ReadJson = { value: Json; problem?: undefined } | { problem: string };

/** Reads what a user typed as JSON; or says what is wrong, and where. */
export function readJson(text: string): ReadJson {
  if (text.trim() === "") return { problem: "The state is empty. Write {} for a state without members." };
  try {
    return { value: JSON.parse(text) as Json };
  } catch (err) {
    return { problem: `This is not JSON${placeOf(text, (err as Error).message)}` };
  }
}

// Browsers word the error in their own way. Only its place is the same in all of them, if they name it.
function placeOf(text: string, message: string): string {
  const [, line, column] = message.match(/line (\d+) column (\d+)/) ?? [];
  if (line) return at(text, Number(line), Number(column));
  const position = message.match(/position (\d+)/)?.[1];
  const before = position === undefined ? text : text.slice(0, Number(position)); // else it ends too early
  const lines = before.split("\n");
  return at(text, lines.length, lines.at(-1)!.length + 1);
}

function at(text: string, line: number, column: number): string {
  const found = text.split("\n")[line - 1]?.slice(column - 1, column + 19) ?? "";
  const what = found.trim() === "" && isLast(text, line, column) ? "it ends too early" : `look at “${found.trim()}”`;
  return `: line ${line}, column ${column}: ${what}.`;
}

function isLast(text: string, line: number, column: number): boolean {
  const rest = text.split("\n").slice(line - 1);
  return [rest[0]?.slice(column - 1) ?? "", ...rest.slice(1)].join("").trim() === "";
}
