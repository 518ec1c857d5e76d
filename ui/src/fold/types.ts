// The types of the HTTP API, with its names: see docs/http.md and docs/views.md.
// Members that may be absent there are optional here.

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json | undefined };
export type JsonObject = { [name: string]: Json | undefined };

export type Status = "idle" | "pending" | "running" | "complete" | "failed" | "cancelled" | "interrupted";
export type Channel = "chunks" | "toolCalls" | "agentState" | "workflow" | "terminal" | "presence" | "session";

/** The envelope of an event. */
export interface Event {
  offset: number;
  type: string;
  channel: string;
  timestamp: string; // RFC 3339, UTC, milliseconds
  thread?: string; // absent means "main"
  invocation?: string;
  instance?: string;
  turn?: number;
  actor?: string;
  data?: JsonObject;
}

/** A half-open range of offsets: `to` is not in it. */
export interface OffsetRange {
  from: number;
  to: number;
}

/** The common members of messages, tool calls and runs. */
export interface Item {
  offset: number;
  end_offset?: number; // absent until it ends
  thread: string;
  invocation?: string;
  instance?: string;
  subagent?: string;
  turn?: number;
  actor?: string;
  status: Status;
  started_at: string;
  ended_at?: string;
  duration_ms?: number;
}

export interface Message extends Item {
  id: string;
  role: string; // user, assistant, system, developer, tool, reasoning or activity
  name?: string;
  text: string;
  parts?: Json; // the content, if it is not a string
  tool_call_id?: string;
  activity_type?: string;
  content?: Json;
  metadata?: Json;
}

export interface ToolCall extends Item {
  id: string;
  name: string;
  message_id?: string;
  arguments: string;
  input?: Json; // the arguments, when they are complete and valid JSON
  result?: ToolResult;
  threads?: string[]; // of the sub-agents that it started
}

export interface ToolResult {
  offset: number;
  message_id?: string;
  text: string;
  parts?: Json;
  error?: string;
}

export interface Run extends Item {
  agent?: string;
  parent?: string; // the invocation of the parent run, for the run of a sub-agent
  context?: string; // text that the agent received before its task: how the previous run ended
  resumable?: boolean;
  error?: { message: string; code?: string };
  result?: Json;
  interrupts?: Json;
  usage?: Json;
}

export interface Thread {
  name: string;
  parent?: string; // the thread of the agent that started this sub-agent
  offset: number;
  last_offset: number;
  messages: number;
  status: Status;
  link?: { runner: string; native_id: string; offset: number; invocation?: string };
  prompt?: { digest: string; offset: number }; // the system prompt of its model, if stored
}

export interface State {
  offset: number;
  thread: string;
  invocation?: string;
  value: Json;
}

export interface PlanEntry {
  content: string;
  status?: string; // pending, in_progress, completed or cancelled; interrupted if the run ended during it
  priority?: string;
}

export interface Plan {
  offset: number;
  thread: string;
  invocation?: string;
  status?: Status; // of its run
  timestamp: string;
  entries: PlanEntry[];
}

/** An event that could not be folded. */
export interface Note {
  offset: number;
  thread: string;
  invocation?: string;
  type: string;
  reason: "malformed" | "unpatchable";
}

export interface SessionInfo {
  id?: string;
  title?: string;
  owner?: string;
  agent?: string;
  labels?: Record<string, string>;
  status: Status;
  closed?: boolean;
}

/** A conversation as of an offset. */
export interface Snapshot {
  session: SessionInfo;
  at: number; // it includes the events before this offset
  thread?: string; // the requested thread; absent for all
  threads: Thread[];
  messages: Message[];
  tool_calls: ToolCall[];
  runs: Run[];
  permissions?: Permission[]; // the open requests, and the newest of the others
  earlier?: number; // number of earlier messages that are left out
  state: State | null;
  plan: Plan | null;
  notes?: Note[];
  notes_left_out?: number;
}

/** A permission request of an agent. It ends with its answer, or with the run that asked. */
export interface Permission extends Omit<Item, "status"> {
  status: "open" | "answered" | "cancelled"; // cancelled: no option was chosen
  id: string;
  tool_call_id?: string;
  message?: string;
  action?: JsonObject; // the action to allow, as in the event; see docs/events.md
  options: PermissionOption[];
  option?: string; // the id of the chosen option
  answered_by?: string;
}

export interface PermissionOption {
  id: string;
  name?: string;
  kind?: string; // allow_once, allow_always, reject_once or reject_always
  covers?: string; // for allow_always and reject_always: the later requests it answers, too
}

/** An event that reverts others: session.rewound, session.cleared, session.overwritten. */
export interface Jump {
  offset: number;
  to: number;
  thread: string; // "" for all
  with?: string[]; // threads of sub-agents below `thread` whose active events change with the jump
  marker: string;
  previous: number; // 0 for none
}

/** The response of rewind, undo, overwrite and clear. */
export interface Rewound {
  session_id: string;
  marker: string;
  offset: number;
  to_offset: number;
  status: Status;
  cancelled?: string[];
}

export interface OpenRun {
  invocation: string;
  thread: string;
  offset: number;
  started_at: string;
  owner?: string;
}

/** An entry of the list of sessions. */
export interface SessionEntry {
  id: string;
  kind: string;
  created_at: string;
  updated_at: string;
  title?: string;
  owner?: string;
  agent?: string;
  labels?: Record<string, string>;
  status?: Status;
  runs?: OpenRun[];
  resumable?: boolean;
  head: number;
  closed?: boolean;
  parent?: string;
  fork_at?: number;
  copy?: boolean;
}

export interface Agent {
  name: string;
  kind: string;
  description?: string;
}

export interface Started {
  session_id: string;
  invocation_id: string;
  status: Status;
  offset: number;
}

export interface Cancelled extends Started {
  resumable?: boolean;
}

export interface Branch {
  id: string; // of the session; for reverted events, the marker of the jump
  kind: "main" | "fork" | "copy" | "rewound";
  session: string;
  parent?: string;
  fork_at: number;
  from: number;
  to: number;
  current?: boolean;
  ranges?: OffsetRange[];
  invocations?: { invocation: string; thread: string; first: number; last: number; title?: string }[];
  invocations_left_out?: number;
  title?: string;
  status?: Status;
  marker?: string;
  thread?: string;
  verb?: string;
  by?: string;
  at?: string;
}

/** The branches of a session and of those that share events with it. */
export interface Tree {
  at: number;
  branches: Branch[];
  cut?: boolean; // the tree is larger than an answer
}

export type MarkerKind =
  | "user"
  | "tool"
  | "error"
  | "cancel"
  | "permission"
  | "plan"
  | "instance"
  | "workflow"
  | "rewind"
  | "overwrite"
  | "clear"
  | "fork"
  | "erase"
  | "bookmark"
  | "feedback";

export interface Marker {
  offset: number;
  kind: MarkerKind;
  label?: string;
  at: string;
  thread?: string;
  invocation?: string;
  to_offset?: number;
}

export interface Gap {
  after_offset: number;
  from: string;
  to: string;
  ms: number;
}

export interface IndexedInvocation {
  invocation: string;
  thread: string;
  first: number;
  last: number;
  started_at: string;
  ended_at?: string;
  status?: Status;
  title?: string;
}

/** The index that the player and the seek bar use. */
export interface ReplayIndex {
  from: number;
  at: number;
  events: number;
  first_at?: string;
  last_at?: string;
  duration_ms: number;
  invocations: IndexedInvocation[]; // the newest
  earlier?: number; // number of older invocations that are left out
  runs: number;
  forks?: { offset: number; at: string }[];
  markers: Marker[];
  marked: Partial<Record<MarkerKind, number>>;
  thinned?: Partial<Record<MarkerKind, number>>; // n: only the first marker of each 2^n offsets is left
  gaps: Gap[];
  gaps_left_out?: number;
  density: { from: string; width_ms: number; counts: number[] };
  keyframes?: number[];
}

export interface Tokens {
  input: number;
  output: number;
  cached: number;
  cache_write: number;
  reasoning: number;
  total: number;
}

/** Totals of a session. */
export interface Summary {
  status: Status;
  final_status?: Status;
  resumable?: boolean;
  at: number;
  events: number;
  inherited_events: number;
  started_at?: string;
  updated_at?: string;
  elapsed_ms: number;
  duration_ms: number;
  turns: number;
  model_turns: number;
  runs: Partial<Record<Status, number>>;
  messages: Record<string, number>;
  tokens: Tokens;
  cost_usd?: number;
  models: (Tokens & { provider?: string; model: string; cost_usd?: number })[];
  tools: { name: string; count: number; failed: number; duration_ms: number }[];
  files_modified: string[];
  files_left_out?: number;
  lines_added: number;
  lines_removed: number;
}

export interface Instance {
  id: string;
  name?: string;
  parent?: string;
  thread: string;
  subagent?: string;
  implicit?: boolean;
  main?: boolean;
  offset: number;
  started_at: string;
  runs: number;
  status: Status;
}

export interface SearchHit {
  session: string;
  title?: string;
  offset: number;
  thread?: string;
  invocation?: string;
  kind: "message" | "tool" | "title";
  role?: string;
  timestamp: string;
  snippet: string; // plain text; matches are between « and »
  rewound?: boolean;
}
