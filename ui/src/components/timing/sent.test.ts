import { expect, it } from "vitest";
import { partsOf, textOf } from "./sent";

it("tells how much of a context each role has", () => {
  const parts = partsOf([
    { role: "system", content: "x".repeat(10) },
    { role: "user", content: "x".repeat(20) },
    { role: "tool", content: "x".repeat(70), tool_call_id: "c" },
    { role: "user", content: "" },
  ]);
  expect(parts.map((p) => [p.role, p.messages, p.share])).toEqual([
    ["system", 1, 0.1],
    ["user", 2, 0.2],
    ["tool", 1, 0.7],
  ]);
  expect(partsOf([{ role: "user", content: "" }])[0]?.share).toBe(0);
  expect(partsOf([])).toEqual([]);
});

it("counts the calls of a message as its text", () => {
  const call = { id: "c", type: "function" as const, function: { name: "Bash", arguments: '{"command":"ls"}' } };
  expect(textOf({ role: "assistant", content: null, tool_calls: [call] })).toBe('Bash({"command":"ls"})');
});
