// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { ReplayIndex } from "@/fold/types";
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

const from = Date.UTC(2026, 0, 5, 12);
const axis = axisOf(from, from + 100_000, [], false);

function bar(now: number) {
  const seeks: (number | string)[] = [];
  const shortcut = vi.fn();
  function Page() {
    useKeys({ ArrowLeft: shortcut });
    return (
      <SeekBar
        index={{} as ReplayIndex}
        axis={axis}
        now={from + now}
        positionText="event 3 of 9"
        onSeek={(ms) => seeks.push(ms - from)}
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

it("stays within the session, and leaves other keys to the page and the browser", () => {
  const { seeks, press } = bar(99_000);
  press("ArrowRight");
  expect(seeks).toEqual([100_000]);
  for (const [key, more] of [["x"], ["Tab"], ["ArrowLeft", { altKey: true }], ["Home", { ctrlKey: true }]] as const)
    expect(press(key, more)).toBe(true);
  expect(seeks).toHaveLength(1);
});
