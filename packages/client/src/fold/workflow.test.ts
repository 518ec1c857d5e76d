// The fixtures that the server's fold is tested with, too: see view/workflow_test.go.
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { jumpOf, mainThread, Timeline } from "./timeline.ts";
import type { Event } from "./types.ts";
import { WorkflowFold } from "./workflow.ts";
import type { WorkflowView } from "./workflow-types.ts";

const folder = new URL("../../../../view/testdata/workflow/", import.meta.url);

const fixtures = readdirSync(folder).map((name) => ({
  name,
  ...(JSON.parse(readFileSync(new URL(name, folder), "utf8")) as {
    about: string;
    events: Event[];
    expected: WorkflowView;
  }),
}));

function active(events: Event[]): Event[] {
  const timeline = new Timeline(events.map(jumpOf).filter((j) => j !== undefined));
  return events.filter((e) => timeline.has(e.offset, e.thread || mainThread, events.length));
}

const plain = (w: WorkflowView | undefined) => w && JSON.parse(JSON.stringify(w));

describe("the fold gives the same result as the server's", () => {
  expect(fixtures.length).toBeGreaterThan(4);
  test.each(fixtures)("$name: $about", (f) => {
    const w = new WorkflowFold();
    for (const e of active(f.events)) w.apply(e);
    expect(plain(w.workflow())).toEqual(f.expected);
  });
});

test.each(fixtures)("a copy is independent: $name", (f) => {
  const events = active(f.events);
  for (let cut = 0; cut <= events.length; cut++) {
    const w = new WorkflowFold();
    for (const e of events.slice(0, cut)) w.apply(e);
    const then = plain(w.workflow());
    const copy = w.clone();
    for (const e of events.slice(cut)) copy.apply(e);
    expect(plain(copy.workflow())).toEqual(f.expected);
    expect(plain(w.workflow())).toEqual(then);
  }
});
