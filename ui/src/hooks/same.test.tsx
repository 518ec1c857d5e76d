// @vitest-environment jsdom
import { cleanup, renderHook } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { alike, useHandlers, useSame } from "./same";

afterEach(cleanup);

it.each([
  [1, 1, 1, true],
  [{ a: 1 }, { a: 1 }, 1, true],
  [{ a: 1 }, { a: 1 }, 0, false],
  [{ a: 1 }, { a: 1, b: undefined }, 1, false],
  [{ a: undefined }, { b: undefined }, 1, false],
  [{ a: [1] }, { a: [1] }, 1, false],
  [{ a: [1] }, { a: [1] }, 2, true],
  [{ a: [1] }, { a: [2] }, 2, false],
  [[], {}, 1, false],
  [null, {}, 1, false],
  [undefined, undefined, 0, true],
])("%j and %j to the depth %i: %s", (a, b, depth, want) => {
  expect(alike(a, b, depth)).toBe(want);
});

it("keeps the earlier value while the new one is equal to it", () => {
  const first = { n: 1 };
  const { result, rerender } = renderHook((p: { n: number }) => useSame(p), { initialProps: first });
  rerender({ n: 1 });
  expect(result.current).toBe(first);
  const second = { n: 2 };
  rerender(second);
  expect(result.current).toBe(second);
});

it("keeps the identity of functions, and calls the newest", () => {
  const calls = [vi.fn(), vi.fn()];
  const { result, rerender } = renderHook((i: number) => useHandlers({ f: calls[i] as () => void }), {
    initialProps: 0,
  });
  const { f } = result.current;
  rerender(1);
  expect(result.current.f).toBe(f);
  f();
  expect(calls.map((c) => c.mock.calls.length)).toEqual([0, 1]);
});
