import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Announcer } from "./announcer";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function lab(fails = () => false) {
  const said: string[] = [];
  const errors: unknown[] = [];
  const a = new Announcer(
    async (action, { at }) => {
      said.push(`${action} ${at}`);
      if (fails()) throw new Error("not now");
    },
    { at: 1 },
    (e) => errors.push(e),
  );
  return { a, said, errors };
}

it("comes, says again that it is there, and goes", () => {
  const { a, said } = lab();
  a.start();
  vi.advanceTimersByTime(40_000);
  a.stop();
  vi.advanceTimersByTime(60_000);
  expect(said).toEqual(["join 1", "move 1", "move 1", "leave 1"]);
});

it("tells of many moves once a second, the last of them", () => {
  const { a, said } = lab();
  a.start();
  for (let at = 1; at <= 60; at++) {
    a.move({ at });
    vi.advanceTimersByTime(50); // 3 s in all
  }
  vi.advanceTimersByTime(1000);
  expect(said.length).toBeLessThanOrEqual(5);
  expect(said.at(-1)).toBe("move 60");
  a.move({ at: 60 });
  vi.advanceTimersByTime(1500);
  expect(said.at(-1)).toBe("move 60");
  expect(said.filter((s) => s === "move 60")).toHaveLength(1);
});

it("says nothing after it has gone, until it comes again", () => {
  const { a, said } = lab();
  a.start();
  a.move({ at: 2 });
  a.stop();
  a.move({ at: 3 });
  a.again();
  vi.advanceTimersByTime(60_000);
  expect(said).toEqual(["join 1", "leave 2"]);
  a.start();
  expect(said.at(-1)).toBe("join 3");
  a.again();
  expect(said.at(-1)).toBe("move 3");
  a.stop();
});

it("tells what went wrong, tries again, and tells when it is right", async () => {
  let down = true;
  const { a, errors } = lab(() => down);
  a.start();
  await vi.advanceTimersByTimeAsync(0);
  expect(errors.at(-1)).toBeInstanceOf(Error);
  down = false;
  await vi.advanceTimersByTimeAsync(20_000);
  expect(errors.at(-1)).toBeUndefined();
  down = true;
  a.stop();
  await vi.advanceTimersByTimeAsync(0);
  expect(errors.at(-1)).toBeUndefined(); // who has gone does not care
});
