// @vitest-environment jsdom

import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it } from "vitest";
import { limited, narrowest, Resizer, usePanelWidth, widest } from "./resizer";

beforeEach(() => localStorage.clear());
afterEach(cleanup);

function Panel() {
  const [width, setWidth] = usePanelWidth();
  return <Resizer width={width} onWidth={setWidth} />;
}
const value = () => Number(screen.getByRole("separator").getAttribute("aria-valuenow"));
const press = (key: string) => fireEvent.keyDown(screen.getByRole("separator"), { key });

it("is made wider and narrower with keys, within its limits, and remembered", () => {
  render(<Panel />);
  const before = value();
  press("ArrowLeft");
  expect(value()).toBeGreaterThan(before);
  press("End");
  expect(value()).toBe(narrowest);
  press("ArrowRight");
  expect(value()).toBe(narrowest);
  press("Home");
  cleanup();
  render(<Panel />);
  expect(value()).toBe(widest);
  fireEvent.doubleClick(screen.getByRole("separator"));
  expect(value()).toBe(before);
});

it("takes the usual width if the browser remembers nonsense", () => {
  localStorage.setItem("tapedeck-panel", "wide");
  render(<Panel />);
  expect(value()).toBe(limited(Number.NaN));
});
