// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { Bubble } from "./chip";

afterEach(cleanup);

const show = (props: Partial<Parameters<typeof Bubble>[0]>) => {
  const onOpen = vi.fn();
  render(<Bubble title="Decide" state="pending" selected={false} onOpen={onOpen} {...props} />);
  return onOpen;
};

it("of a task of a person says whether its question waits or was answered, and opens it", () => {
  const onOpen = show({ state: "waiting" });
  fireEvent.click(screen.getByRole("button", { name: "Decide, question, asks for an answer" }));
  expect(onOpen).toHaveBeenCalledOnce();
  cleanup();
  show({ state: "completed" });
  screen.getByRole("button", { name: "Decide, question, done" });
  cleanup();
  show({});
  screen.getByRole("button", { name: "Decide, question, not reached" });
});

it("of a task of an agent counts what was said and done, and says when it asks", () => {
  show({ state: "active", count: { messages: 2, calls: 1, asks: 0 } });
  expect(screen.getByRole("button", { name: "Decide, 2 messages, 1 tool call, active" }).textContent).toBe("3");
  cleanup();
  show({ state: "active", count: { messages: 0, calls: 0, asks: 1 } });
  screen.getByRole("button", { name: "Decide, 0 messages, 0 tool calls, 1 question, asks for an answer" });
});
