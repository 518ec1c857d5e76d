import type { Agent } from "@tapedeck/client";
import { expect, it } from "vitest";
import { answererOf } from "./agents";

const agents: Agent[] = [
  { name: "coder", kind: "llm", models: ["small", "large"] },
  { name: "hello", kind: "script" },
];

it("names the agent that was chosen, that answered last, or of the session", () => {
  const name = (asked: Partial<Parameters<typeof answererOf>[0]>) => answererOf({ agents, ...asked }).agent?.name;
  expect(name({ choice: { agent: "hello" }, last: "coder", own: "coder" })).toBe("hello");
  expect(name({ last: "hello", own: "coder" })).toBe("hello");
  expect(name({ own: "coder" })).toBe("coder");
  expect(name({ choice: { agent: "left" }, own: "coder" })).toBe("coder");
});

it("asks instead of taking the first agent", () => {
  expect(answererOf({ agents })).toEqual({ why: "Choose who answers." });
  expect(answererOf({ agents, own: "claude-code" }).why).toContain("no agent claude-code");
  expect(answererOf({ agents, last: "claude-code", own: "coder" }).agent).toBeUndefined();
  expect(answererOf({ agents, own: "workflow" }).why).toContain("a workflow");
  expect(answererOf({ agents: [], own: "coder" }).why).toContain("no agents");
  expect(answererOf({ own: "coder" })).toEqual({});
});

it("offers the program of the thread where a message can wait for it", () => {
  expect(answererOf({ agents, last: "my-loop", mayWait: true })).toMatchObject({ program: "my-loop" });
  expect(answererOf({ agents, last: "my-loop", mayWait: true }).outside).toBeUndefined();
  const choice = { agent: "my-loop" };
  expect(answererOf({ agents, last: "my-loop", mayWait: true, choice }).outside).toBe(true);
  expect(answererOf({ agents, last: "my-loop", choice })).toEqual({ why: expect.stringContaining("no agent my-loop") });
  expect(answererOf({ agents, last: "hello", mayWait: true, choice }).agent?.name).toBe("hello");
  expect(answererOf({ agents, own: "workflow", mayWait: true }).program).toBeUndefined();
  const other = answererOf({ agents, last: "my-loop", mayWait: true, choice: { agent: "hello" }, running: true });
  expect([other.agent?.name, other.program]).toEqual(["hello", "my-loop"]); // the user can choose it again
});

it("puts a message behind those that wait for a program, also if another agent answered last", () => {
  const waits = { agents, mayWait: true, last: "hello", own: "coder", waitsFor: "my-loop" };
  expect(answererOf(waits)).toMatchObject({ outside: true, program: "my-loop" });
  expect(answererOf({ ...waits, choice: { agent: "hello" } }).agent?.name).toBe("hello");
  expect(answererOf({ ...waits, running: true }).agent?.name).toBe("hello"); // its run is open
  expect(answererOf({ ...waits, waitsFor: "" })).toMatchObject({ outside: true }); // a program without a name
});

it("keeps a model only while the agent offers it", () => {
  expect(answererOf({ agents, choice: { agent: "coder", model: "large" } }).model).toBe("large");
  expect(answererOf({ agents, choice: { agent: "coder", model: "other" } }).model).toBeUndefined();
});
