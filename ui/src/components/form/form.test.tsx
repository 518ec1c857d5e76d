// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import type { Permission } from "@tapedeck/client";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { Ask } from "../conversation/ask";
import { fieldsOf, inputOf, isKept, objectIn, startValues } from "./values";

afterEach(cleanup);

const form = [
  {
    id: "choice",
    label: "What now?",
    type: "enum",
    required: true,
    options: [{ value: "a", label: "This" }, { value: "b" }],
  },
  { id: "score", type: "integer", min: 1, max: 5, default: 3 },
  { id: "sure", label: "Sure?", type: "boolean" },
  { id: "note", type: "text", maxLength: 20 },
  { id: "known", type: "string", readOnly: true, default: "fixed" },
];

const asked: Permission = {
  offset: 7,
  thread: "main",
  status: "open",
  started_at: "2026-01-05T12:00:00Z",
  id: "ask",
  message: "Decide",
  form,
  options: [
    { id: "submit", name: "Submit", kind: "allow_once" },
    { id: "no", name: "Refuse", kind: "reject_once" },
  ],
};

function show(p: Permission, onAnswer?: () => Promise<unknown>) {
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Ask permission={p} onAnswer={onAnswer} />
    </QueryClientProvider>,
  );
}

it("answers a question with the values of its form, in the types of the fields", async () => {
  const answer = vi.fn(async () => undefined);
  show(asked, answer);
  fireEvent.change(screen.getByLabelText("What now?"), { target: { value: "b" } });
  fireEvent.change(screen.getByLabelText(/^score/), { target: { value: "5" } });
  fireEvent.click(screen.getByLabelText("Sure?"));
  fireEvent.click(screen.getByRole("button", { name: "Submit" }));
  await waitFor(() => expect(answer).toHaveBeenCalledWith(asked, "submit", { choice: "b", score: 5, sure: true }));
});

it("rejects a question without its fields", async () => {
  const answer = vi.fn(async () => undefined);
  show(asked, answer);
  fireEvent.click(screen.getByRole("button", { name: "Refuse" }));
  await waitFor(() => expect(answer).toHaveBeenCalledWith(asked, "no"));
});

it("shows an answered form with the labels of its fields and options", () => {
  show({ ...asked, status: "answered", option: "submit", input: { choice: "a", sure: true, other: { x: 1 } } });
  expect(screen.getByText("This").previousSibling?.textContent).toBe("What now?");
  expect(screen.getByText("yes").previousSibling?.textContent).toBe("Sure?");
  expect(screen.getByText(/"x": 1/).previousSibling?.textContent).toBe("other");
});

it("says for whom a field is optional, what its limits are, and that it cannot be changed", () => {
  show(asked, async () => undefined);
  screen.getByText("From 1 to 5");
  screen.getByText("At most 20 characters");
  expect(screen.getByLabelText("known")).toHaveProperty("readOnly", true);
  expect(screen.getByLabelText("What now?")).toHaveProperty("required", true);
});

it("leaves out what is no field of a form, and fields without a value", () => {
  const fields = fieldsOf([
    ...form,
    null,
    7,
    { id: "" },
    { id: 3 },
    { id: "score" },
    { id: "odd", options: ["x", { value: "v" }] },
  ]);
  expect(fields.map((f) => f.id)).toEqual(["choice", "score", "sure", "note", "known", "odd"]);
  expect(fields.at(-1)).toEqual({ id: "odd", type: "string", options: [{ value: "v" }] });
  expect(fieldsOf("no form")).toEqual([]);
  expect(inputOf(fields, startValues(fields))).toEqual({ score: 3, sure: false });
});

it("keeps a field named __proto__ apart from the object's own", () => {
  const fields = fieldsOf([{ id: "__proto__", type: "string" }]);
  const input = inputOf(fields, Object.fromEntries([["__proto__", "x"]]));
  expect(JSON.stringify(input)).toBe('{"__proto__":"x"}');
});

it("sends no number that lost digits in the browser", async () => {
  const answer = vi.fn(async () => undefined);
  const fields = [
    { id: "id", type: "integer", required: true, default: 9007199254740992 },
    { id: "other", type: "integer" },
  ];
  show({ ...asked, form: fields }, answer);
  const other = screen.getByLabelText(/^other/) as HTMLInputElement;
  fireEvent.change(other, { target: { value: "9007199254740993" } });
  expect(other.validationMessage).toContain("more digits");
  fireEvent.click(screen.getByRole("button", { name: "Submit" }));
  expect(answer).not.toHaveBeenCalled();
  fireEvent.change(other, { target: { value: "9007199254740991" } });
  fireEvent.click(screen.getByRole("button", { name: "Submit" }));
  await waitFor(() =>
    expect(answer).toHaveBeenCalledWith({ ...asked, form: fields }, "submit", { other: 9007199254740991 }),
  );
  for (const kept of ["", "5", "-0.50", "1e21", "1e-7", "007", "100000000000000000000"])
    expect(isKept(kept)).toBe(true);
  for (const lost of ["9007199254740993", "0.1234567890123456789", "12345678901234567890"])
    expect(isKept(lost)).toBe(false);
});

it("reads a JSON object, and says what is wrong with another text", () => {
  expect(objectIn(" ")).toBeUndefined();
  expect(objectIn('{"a":1}')).toEqual({ a: 1 });
  for (const text of ["[1]", "3", "{a:1}", "null"]) expect(() => objectIn(text)).toThrow("not a JSON object");
  expect(objectIn('{"a\\"9007199254740993":[0.50,-1e-7]}')).toEqual({ 'a"9007199254740993': [0.5, -1e-7] });
  for (const n of ["9007199254740993", "1e400", "0.12345678901234567"])
    expect(() => objectIn(`{"a":[${n}]}`)).toThrow(`the number ${n} has more digits`);
});
