import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { keyGroups } from "./keys-list";

const doc = readFileSync(new URL("../../../docs/screen.md", import.meta.url), "utf8");
const table = doc.split("## Keys")[1]?.split("\n## ")[0] ?? "";

it("has the same keys as the documentation", () => {
  const listed = new Set(keyGroups.flatMap(([, lines]) => lines.flatMap(([keys]) => keysIn(keys))));
  const rows = table.split("\n").filter((l) => l.startsWith("| ") && !l.startsWith("| keys"));
  const documented = new Set(rows.flatMap((l) => keysIn((l.split(" | ")[0] ?? "").replace(/^\| /, ""))));
  expect([...listed].sort()).toEqual([...documented].sort());
});

function keysIn(text: string): string[] {
  return text
    .replace(/\b(with|and|in capitals back)\b/g, " ")
    .split(/[\s`]+/)
    .map((k) => (/^,+$/.test(k) ? "," : k.replace(/,$/, "")))
    .filter(Boolean);
}

it("names each command once", () => {
  const names = keyGroups.flatMap(([, lines]) => lines.flatMap(([, , does]) => (does ?? []).map(([name]) => name)));
  expect(new Set(names).size).toBe(names.length);
});
