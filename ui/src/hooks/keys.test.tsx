// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { switchKeys, useKeys } from "./keys";

afterEach(() => {
  cleanup();
  switchKeys(true);
});

function Page({ onKey, dialog }: { onKey: (k: string) => void; dialog?: boolean }) {
  useKeys({
    u: () => onKey("u"),
    U: () => onKey("U"),
    "Alt+.": () => onKey("Alt+."),
    "Shift+ArrowLeft": () => onKey("S←"),
    " ": () => onKey("space"),
    Escape: () => onKey("esc"),
  });
  return (
    <>
      <button type="button">Button</button>
      <input aria-label="Field" />
      <input type="checkbox" aria-label="Check" />
      {dialog && <dialog open>Dialog</dialog>}
    </>
  );
}

function page(dialog?: boolean) {
  const onKey = vi.fn();
  render(<Page onKey={onKey} dialog={dialog} />);
  return onKey;
}

it("handles keys with any focus", () => {
  const onKey = page();
  fireEvent.keyDown(document.body, { key: "u" });
  fireEvent.keyDown(screen.getByRole("button"), { key: "U", shiftKey: true });
  fireEvent.keyDown(screen.getByRole("checkbox"), { key: ".", altKey: true });
  fireEvent.keyDown(document.body, { key: "ArrowLeft", shiftKey: true });
  expect(onKey.mock.calls.flat()).toEqual(["u", "U", "Alt+.", "S←"]);
});

it("leaves keys to text fields, to the focused button, and to the browser", () => {
  const onKey = page();
  fireEvent.keyDown(screen.getByLabelText("Field"), { key: "u" });
  fireEvent.keyDown(screen.getByRole("button"), { key: " " });
  fireEvent.keyDown(document.body, { key: "u", ctrlKey: true });
  expect(onKey).not.toHaveBeenCalled();
  fireEvent.keyDown(screen.getByLabelText("Field"), { key: "Escape" });
  expect(onKey.mock.calls.flat()).toEqual(["esc"]);
});

it("does nothing while a dialog is open, or when shortcuts are off", () => {
  const onKey = page(true);
  fireEvent.keyDown(document.body, { key: "u" });
  cleanup();
  const other = page();
  switchKeys(false);
  fireEvent.keyDown(document.body, { key: "u" });
  expect(onKey).not.toHaveBeenCalled();
  expect(other).not.toHaveBeenCalled();
});
