// @vitest-environment jsdom
import type { Message } from "@tapedeck/client";
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import { MessageText, maxText } from "./message-text";

afterEach(cleanup);

const message = (text: string, status = "complete"): Message =>
  ({ id: "m", role: "user", text, status, thread: "main", offset: 0 }) as Message;

it("cuts a text of megabytes, and shows all of it on request", () => {
  const text = `${"x".repeat(5_000_000)}end`;
  const { container } = render(<MessageText message={message(text)} />);
  expect(container.textContent?.length).toBeLessThan(maxText + 200);
  fireEvent.click(screen.getByRole("button", { name: /^Show all/ }));
  expect(container.textContent).toBe(text);
});

it("shows the end of a long text that still grows", () => {
  const { container } = render(<MessageText message={message(`begin ${"x".repeat(maxText)} newest`, "running")} />);
  expect(container.textContent).toContain("newest");
  expect(container.textContent).not.toContain("begin");
});

it("does not split a character, and leaves a short text alone", () => {
  const { container } = render(<MessageText message={message(`${"x".repeat(maxText - 1)}😀 more`)} />);
  expect(container.querySelector("p")?.textContent).toBe("x".repeat(maxText - 1));
  cleanup();
  render(<MessageText message={message("short")} />);
  expect(screen.queryByRole("button")).toBeNull();
  screen.getByText("short");
});
