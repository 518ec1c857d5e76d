import type { Json, JsonObject } from "@tapedeck/client";

export interface StateChange {
  op: "added" | "removed" | "changed"; // in b
  path: string;
  a?: Json;
  b?: Json;
}

const maxDepth = 40;

/** The differences between two values, member by member; at most maxChanges. */
export function stateDiff(
  a: Json | undefined,
  b: Json | undefined,
  maxChanges = 200,
): { changes: StateChange[]; more: boolean } {
  const changes: StateChange[] = [];
  const walk = (x: Json | undefined, y: Json | undefined, path: string, depth: number): void => {
    if (changes.length > maxChanges || x === y) return;
    if (x === undefined) changes.push({ op: "added", path, b: y });
    else if (y === undefined) changes.push({ op: "removed", path, a: x });
    else if (depth < maxDepth && isBranch(x) && isBranch(y) && Array.isArray(x) === Array.isArray(y)) {
      const [left, right] = [x as JsonObject, y as JsonObject];
      const names = new Set([...Object.keys(left), ...Object.keys(right)]);
      for (const name of names) walk(left[name], right[name], pathTo(path, name, Array.isArray(x)), depth + 1);
    } else if (JSON.stringify(x) !== JSON.stringify(y)) changes.push({ op: "changed", path, a: x, b: y });
  };
  walk(a, b, "", 0);
  return { changes: changes.slice(0, maxChanges), more: changes.length > maxChanges };
}

function isBranch(v: Json): v is JsonObject | Json[] {
  return v !== null && typeof v === "object";
}

function pathTo(path: string, name: string, item: boolean): string {
  if (item) return `${path}[${name}]`;
  const plain = /^[\w-]+$/.test(name) ? name : JSON.stringify(name);
  return path ? `${path}.${plain}` : plain;
}
