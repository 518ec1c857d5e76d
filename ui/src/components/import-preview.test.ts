import { expect, test } from "vitest";
import { whenOf } from "./import-preview";

const of = (first: Date, last: Date) =>
  whenOf({ events: 1, first_at: first.toISOString(), last_at: last.toISOString() });

test("the time of a session is as short as possible", () => {
  const at = (day: number, hour: number, minute = 0) => new Date(2026, 0, day, hour, minute);
  expect(of(at(5, 10), at(5, 10))).toBe("5 Jan 2026, 10:00");
  expect(of(at(5, 10), at(5, 11, 30))).toBe("5 Jan 2026, 10:00 – 11:30");
  expect(of(at(5, 10), at(7, 9))).toBe("5 Jan 2026 – 7 Jan 2026");
  expect(whenOf({ events: 1 })).toBe("now");
});
