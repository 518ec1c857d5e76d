import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Announcer } from "./announcer.ts";

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

it("joins, sends heartbeats, and leaves", () => {
  const { a, said } = lab();
  a.start();
  vi.advanceTimersByTime(40_000);
  a.stop();
  vi.advanceTimersByTime(60_000);
  expect(said).toEqual(["join 1", "move 1", "move 1", "leave 1"]);
});

it("sends at most one move a second, always the last", () => {
  const { a, said } = lab();
  a.start();
  for (let at = 1; at <= 60; at++) {
    a.move({ at });
    vi.advanceTimersByTime(50); // 3 s in total
  }
  vi.advanceTimersByTime(1000);
  expect(said.length).toBeLessThanOrEqual(5);
  expect(said.at(-1)).toBe("move 60");
  a.move({ at: 60 });
  vi.advanceTimersByTime(1500);
  expect(said.at(-1)).toBe("move 60");
  expect(said.filter((s) => s === "move 60")).toHaveLength(1);
});

it("sends nothing after stop, until it is started again", () => {
  const { a, said } = lab();
  a.start();
  a.move({ at: 2 });
  a.stop();
  a.move({ at: 3 });
  a.resend();
  vi.advanceTimersByTime(60_000);
  expect(said).toEqual(["join 1", "leave 2"]);
  a.start();
  expect(said.at(-1)).toBe("join 3");
  a.resend();
  expect(said.at(-1)).toBe("move 3");
  a.stop();
});

it("reports an error, tries again, and reports success", async () => {
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
  expect(errors.at(-1)).toBeUndefined(); // errors of leave are ignored
});
