import { expect, test, vi } from "vitest";
import { loaded } from "./lazy-part";

test("a script that cannot be loaded is loaded again, later and later", async () => {
  vi.useFakeTimers();
  try {
    let failures = 7;
    const load = vi.fn(async () => {
      if (failures-- > 0) throw new TypeError("Failed to fetch dynamically imported module");
      return "the module";
    });
    const result = loaded(load);
    await vi.advanceTimersByTimeAsync(249);
    expect(load).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(load).toHaveBeenCalledTimes(2);
    await vi.advanceTimersByTimeAsync(20_000);
    expect(await result).toBe("the module");
    expect(load).toHaveBeenCalledTimes(8);
  } finally {
    vi.useRealTimers();
  }
});
