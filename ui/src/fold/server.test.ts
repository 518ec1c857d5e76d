import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { followed } from "./fixtures";
import type { Event, Snapshot } from "./types";

// Random logs that the server has folded. The fold here must give the same result.
// LOGS=2000 replays this many logs; FIRST=7 starts with that log.

interface Page {
  seed: number;
  events: Event[];
  snapshots: Snapshot[];
}

const root = new URL("../../..", import.meta.url);
const logs = Number(process.env.LOGS ?? 40);
const first = Number(process.env.FIRST ?? 0);
const batch = 40;

const hasGo = spawnSync("go", ["version"]).status === 0;

function pages(from: number, count: number): Page[] {
  const args = ["run", "./test/pages", `-first=${from}`, `-logs=${count}`];
  const run = spawnSync("go", args, { cwd: root, encoding: "utf8", maxBuffer: 2 ** 30 });
  expect(run.status, run.stderr).toBe(0);
  return run.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

/** Values that the fold does not read as text stay as sent, and may contain half a surrogate pair. */
const comparable = (s: Snapshot): Snapshot =>
  JSON.parse(JSON.stringify(s).replace(/\\ud[89a-f][0-9a-f]{2}/g, "\ufffd"));

test.skipIf(!hasGo)(
  `${logs} random logs fold as they do in the server, as of every offset`,
  { timeout: 600_000 },
  () => {
    let seen = 0;
    for (let from = first; from < first + logs; from += batch) {
      for (const page of pages(from, Math.min(batch, first + logs - from))) {
        for (const want of page.snapshots) {
          const c = followed(page.events, want.at).keep();
          for (const e of page.events) if (e.offset < want.at) c.apply(e);
          expect(comparable(c.snapshot()), `log ${page.seed} as of ${want.at}`).toEqual(comparable(want));
        }
        seen++;
      }
    }
    expect(seen).toBe(logs);
  },
);
