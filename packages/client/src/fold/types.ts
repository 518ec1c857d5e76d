// The types of the API under the names that the page uses. wire.ts has all of them,
// generated from the server; docs/http.md and docs/views.md say what they mean.
import type * as wire from "../wire.ts";

export type Agent = wire.Agent;
export type Axis = wire.Axis;
export type Branch = wire.Branch;
export type Cancelled = wire.Cancelled;
export type Gap = wire.Gap;
export type IndexedInvocation = wire.IndexedInvocation;
export type Instance = wire.Instance;
export type Item = wire.Item;
export type Json = wire.Json;
export type JsonObject = wire.JsonObject;
export type Marker = wire.Marker;
export type Message = wire.Message;
export type Note = wire.Note;
export type OffsetRange = wire.OffsetRange;
export type OpenRun = wire.OpenRun;
export type Permission = wire.Permission;
export type Input = wire.Input;
export type PermissionOption = wire.PermissionOption;
export type Plan = wire.Plan;
export type PlanEntry = wire.PlanEntry;
export type Retry = wire.Retry;
export type ReplayIndex = wire.ReplayIndex;
export type Rewound = wire.Rewound;
export type Run = wire.Run;
export type SearchHit = wire.SearchHit;
export type SessionInfo = wire.SessionInfo;
export type Snapshot = wire.Snapshot;
export type Stretch = wire.Stretch;
export type Started = wire.Started;
export type State = wire.State;
export type Status = wire.Status;
export type Summary = wire.Summary;
export type Thread = wire.Thread;
export type Tokens = wire.Tokens;
export type ToolCall = wire.ToolCall;
export type ToolResult = wire.ToolResult;
export type Tree = wire.Branches;

/** An event as the folds read it: its data may have any form, whatever its type says. */
export type Event = wire.Envelope;

export type Channel = "chunks" | "toolCalls" | "agentState" | "workflow" | "terminal" | "presence" | "session";

export type MarkerKind = wire.Marker["kind"];

/** An entry of the list of sessions. */
export type SessionEntry = wire.SessionRow;

/** An event that reverts others: session.rewound, session.cleared, session.overwritten, attempt.superseded. */
export interface Jump {
  offset: number;
  to: number;
  thread: string; // "" for all
  with?: string[]; // threads of sub-agents below `thread` whose active events change with the jump
  marker: string;
  previous: number; // 0 for none
}
