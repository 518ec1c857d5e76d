import type { ReplayIndex } from "@tapedeck/client";
import { expect, it } from "vitest";
import { type OpenSession, placesOf } from "./open-session";

const gone: string[] = [];
const tape: OpenSession = {
  index: {
    axis: "time",
    duration_ms: 3_700_000,
    invocations: [
      { invocation: "i1", first: 1, title: "Say hello" },
      { invocation: "i2", first: 8 },
    ],
  } as unknown as ReplayIndex,
  head: 500,
  seek: (at) => gone.push(`at ${at}`),
  seekPosition: (ms) => gone.push(`${ms / 1000} s`),
};

it.each([
  ["2", "Turn 2 (i2), Offset 2 (of 500)"],
  ["1", "Turn 1 (Say hello), Offset 1 (of 500)"],
  ["412", "Offset 412 (of 500)"],
  ["turn 2", "Turn 2 (i2)"],
  ["t 1", "Turn 1 (Say hello)"],
  ["#412", "Offset 412 (of 500)"],
  ["offset 0", "Offset 0 (of 500)"],
  ["1:35", "1:35 (of 1:01:40)"],
  ["1:00:05", "1:00:05 (of 1:01:40)"],
  ["95.5s", "1:35.5 (of 1:01:40)"],
  ["1m 5s", "1:05 (of 1:01:40)"],
  ["500", ""],
  ["turn 3", ""],
  ["2:00:00", ""],
  ["", ""],
  ["build", ""],
])("knows where %o leads", (text, places) => {
  expect(
    placesOf(text, tape)
      .map((p) => `${p.name} (${p.hint})`)
      .join(", "),
  ).toBe(places);
});

it("goes behind the event, so that it is shown", () => {
  for (const text of ["turn 2", "#412", "0:20"]) placesOf(text, tape)[0]?.go();
  expect(gone).toEqual(["at 9", "at 413", "20 s"]);
});
