// The fixtures that the server's fold is tested with, too: see view/golden_test.go.
import { readdirSync, readFileSync } from "node:fs";
import { Conversation } from "./conversation.ts";
import { jumpOf, Timeline } from "./timeline.ts";
import type { Event, Snapshot } from "./types.ts";

const folder = new URL("../../../../view/testdata/", import.meta.url);

interface Fixture {
  about: string;
  thread?: string;
  events: Event[];
  snapshot: Snapshot;
}

export const fixtures = readdirSync(folder)
  .filter((name) => name.endsWith(".json"))
  .map((name) => ({ name, ...(JSON.parse(readFileSync(new URL(name, folder), "utf8")) as Fixture) }));

/** A conversation that skips events that are not active as of an offset; by default, as of the last event. */
export function followed(events: Event[], at = (events.at(-1)?.offset ?? -1) + 1): Conversation {
  const c = new Conversation();
  const jumps = events.map(jumpOf).filter((j) => j !== undefined);
  if (jumps.length > 0) c.follow(new Timeline(jumps), at);
  return c;
}

/** A snapshot as JSON gives it: without undefined members. */
export const plain = (s: Snapshot): Snapshot => JSON.parse(JSON.stringify(s));
