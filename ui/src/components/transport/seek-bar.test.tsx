// @vitest-environment jsdom

import type { ReplayIndex } from "@tapedeck/client";
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { flushSync } from "react-dom";
import { createRoot } from "react-dom/client";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { switchKeys, useKeys } from "@/hooks/keys";
import { axisOf } from "./axis";
import { SeekBar } from "./seek-bar";

vi.mock("@/hooks/theme", () => ({ useTheme: () => "light" }));
vi.mock("./paint", () => ({ paintBar: () => undefined, markersNear: () => [], markerKinds: {} }));

beforeEach(() =>
  vi.stubGlobal(
    "ResizeObserver",
    class {
      observe() {}
      disconnect() {}
    },
  ),
);
afterEach(() => {
  cleanup();
  switchKeys(true);
  vi.unstubAllGlobals();
});

function bar(position: number, axis = axisOf("time", 100_000, [], false)) {
  const seeks: (number | string)[] = [];
  const shortcut = vi.fn();
  function Page() {
    useKeys({ ArrowLeft: shortcut });
    return (
      <SeekBar
        index={{} as ReplayIndex}
        axis={axis}
        position={position}
        positionText="event 3 of 9"
        onSeek={(ms) => seeks.push(ms)}
        onStart={() => seeks.push("start")}
        onEnd={() => seeks.push("end")}
      />
    );
  }
  render(<Page />);
  const press = (key: string, more = {}) => fireEvent.keyDown(screen.getByRole("slider"), { key, ...more });
  return { seeks, shortcut, press };
}

it.each([true, false])("moves with the keys of a slider, with shortcuts on: %s", (on) => {
  switchKeys(on);
  const { seeks, shortcut, press } = bar(50_000);
  for (const key of ["ArrowRight", "ArrowUp", "ArrowLeft", "ArrowDown", "PageUp", "PageDown", "Home", "End"])
    press(key);
  press("ArrowLeft", { shiftKey: true });
  expect(seeks).toEqual([55_000, 55_000, 45_000, 45_000, 60_000, 40_000, "start", "end", 40_000]);
  expect(shortcut).not.toHaveBeenCalled(); // it would move twice
});

it("moves event by event if they have no times", () => {
  const { seeks, press } = bar(30, axisOf("events", 50, [], false));
  for (const key of ["ArrowRight", "ArrowLeft", "PageUp"]) press(key);
  expect(seeks).toEqual([31, 29, 35]);
  expect(screen.getByRole("slider").getAttribute("aria-valuemax")).toBe("50");
  expect(screen.getByRole("slider").getAttribute("aria-valuenow")).toBe("30");
});

it("stays within the session, and leaves other keys to the page and the browser", () => {
  const { seeks, press } = bar(99_000);
  press("ArrowRight");
  expect(seeks).toEqual([100_000]);
  for (const [key, more] of [["x"], ["Tab"], ["ArrowLeft", { altKey: true }], ["Home", { ctrlKey: true }]] as const)
    expect(press(key, more)).toBe(true);
  expect(seeks).toHaveLength(1);
});

it("plays on if React's scheduler has no turn between many frames", () => {
  vi.stubGlobal("IS_REACT_ACT_ENVIRONMENT", false); // act would give it a turn
  const root = createRoot(document.createElement("div"));
  const axis = axisOf("time", 100_000, [], false);
  const draw = (position: number) =>
    flushSync(() =>
      root.render(
        <SeekBar
          index={{} as ReplayIndex}
          axis={axis}
          position={position}
          positionText=""
          onSeek={() => undefined}
          onStart={() => undefined}
          onEnd={() => undefined}
        />,
      ),
    );
  for (let frame = 0; frame < 100; frame++) draw(frame * 16);
  root.unmount();
});
