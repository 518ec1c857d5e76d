import type { Api } from "../api.ts";
import type { Axis, ReplayIndex, SessionEntry, Snapshot } from "../fold/types.ts";
import type { Connection, Follower, Listener } from "../follow.ts";
import type { MomentsApi } from "./moments.ts";

/** A part of a session that is played alone. */
export interface Span {
  to: number; // playing stops when the events before this offset are shown
  speed: number; // lower than the chosen one if the part is short
}

/** A part is played for this long at least, so that one sees it. */
const shownMs = 3000;
const speeds = [32, 16, 8, 4, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01];

/** The speed for a part of this length: the wanted one, or the highest one that shows it long enough. */
export function spanSpeed(ms: number, wanted: number): number {
  if (ms / wanted >= shownMs) return wanted;
  return speeds.find((s) => s < wanted && ms / s >= shownMs) ?? Math.min(wanted, 0.01);
}

/** The state that a player renders. Each change gives a new object. */
export interface DeckState {
  error?: unknown; // why loading or the last seek failed
  entry?: SessionEntry; // as of the opening of the player
  view?: Snapshot; // the conversation at the playhead
  index?: ReplayIndex;
  head: number; // the number of events
  at: number; // the playhead: the events before this offset are shown
  axis: Axis; // what the playhead moves along
  position: number; // of the playhead: milliseconds of the recording, or shown events
  length: number; // of the axis, in the same unit
  playing: boolean;
  live: boolean; // the playhead follows the head
  seeking: boolean; // the events at the playhead are being loaded
  speed: number;
  span: Span | undefined; // the part that is played alone; absent if it plays to the end
  skipIdle: boolean;
  connection: Connection;
}

export type DeckApi = MomentsApi & Pick<Api, "session" | "replayIndex">;

export interface DeckOptions {
  api: DeckApi;
  follow: (id: string, l: Listener) => Pick<Follower, "start" | "stop" | "reconnect">;
  now?: (() => number) | undefined; // milliseconds, of any origin
  frame?: ((f: () => void) => void) | undefined; // calls f once, with the next frame
  finished?: boolean; // a recording: all events are in memory, and no more will arrive
}
