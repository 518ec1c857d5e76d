import { expect, it } from "vitest";
import { firstDay, withEmptyDays } from "./figures";

it("has every day, also those without usage", () => {
  const days = [{ day: "2026-02-27" }, { day: "2026-03-02" }];
  expect(withEmptyDays(days).map((d) => d.day)).toEqual(["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-02"]);
  expect(withEmptyDays(days, "2026-02-26", "2026-03-03").length).toBe(6);
  expect(withEmptyDays([], undefined, undefined)).toEqual([]);
});

it("shows only the days with usage if the time is long or no time at all", () => {
  const far = [{ day: "1970-01-01" }, { day: "2026-03-02" }];
  expect(withEmptyDays(far)).toEqual(far);
  const hostile = [{ day: "99999-01-01" }];
  expect(withEmptyDays(hostile)).toEqual(hostile);
});

it("counts today as the last of the days", () => {
  const now = Date.UTC(2026, 2, 1, 23, 59);
  expect(firstDay(1, now)).toBe("2026-03-01");
  expect(firstDay(7, now)).toBe("2026-02-23");
  expect(firstDay(undefined, now)).toBeUndefined();
});
