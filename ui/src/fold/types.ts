// The shapes of the API, with the names that it has: see docs/http.md and
// docs/views.md. What may be absent there is optional here.

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

/** A range of offsets, without its end. */
export interface OffsetRange {
  from: number;
  to: number;
}

/** What messages, tool calls and runs have in common. */
export interface Item {
  offset: number;
  end_offset?: number; // absent while it goes on
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
  parts?: Json; // its content, if that is more than text
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
  threads?: string[]; // of the sub-agents that it has started
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
  parent?: string; // the invocation that started it, of a sub-agent with a run of its own
  context?: string; // what the agent was told before its task: how the run before it ended
  resumable?: boolean;
  error?: { message: string; code?: string };
  result?: Json;
  interrupts?: Json;
  usage?: Json;
}

export interface Thread {
  name: string;
  parent?: string; // the thread whose agent has started the one here
  offset: number;
  last_offset: number;
  messages: number;
  status: Status;
  link?: { runner: string; native_id: string; offset: number; invocation?: string };
  prompt?: { digest: string; offset: number }; // the system text of its model, if one is stored
}

export interface State {
  offset: number;
  thread: string;
  invocation?: string;
  value: Json;
}

export interface PlanEntry {
  content: string;
  status?: string; // pending, in_progress, completed or cancelled; interrupted if the run ended in the middle of it
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

/** A conversation as it stands at an offset. */
export interface Snapshot {
  session: SessionInfo;
  at: number; // the events before this offset are in it
  thread?: string; // the one that was asked for; absent for all
  threads: Thread[];
  messages: Message[];
  tool_calls: ToolCall[];
  runs: Run[];
  permissions?: Permission[]; // what is open, and the newest of what is not
  earlier?: number; // messages that were before these, and are not here
  state: State | null;
  plan: Plan | null;
  notes?: Note[];
  notes_left_out?: number;
}

/** A question of an agent to people. It ends with its answer, or with the run that asked. */
export interface Permission extends Omit<Item, "status"> {
  status: "open" | "answered" | "cancelled"; // cancelled: nobody chose
  id: string;
  tool_call_id?: string;
  message?: string;
  action?: JsonObject; // what it allows, as in the event; see docs/events.md
  options: PermissionOption[];
  option?: string; // the id of the one that was chosen
  answered_by?: string;
}

export interface PermissionOption {
  id: string;
  name?: string;
  kind?: string; // allow_once, allow_always, reject_once or reject_always
  covers?: string; // of a kind that lasts: what else it answers
}

/** Somebody who has the session open. */
export interface Person {
  user: string;
  joined_at?: string;
  last_seen: string; // the time of the newest event of theirs
  cursor?: Json;
}

/** What takes others back: session.rewound, session.cleared, session.overwritten. */
export interface Jump {
  offset: number;
  to: number;
  thread: string; // "" for all
  with?: string[]; // threads that go back with it: those of the sub-agents that were started there
  marker: string;
  previous: number; // 0 for none
}

/** The answer of rewind, undo, overwrite and clear. */
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
  id: string; // of the session; of what was taken back, its marker
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

/** What a player needs to find its way. */
export interface ReplayIndex {
  from: number;
  at: number;
  events: number;
  first_at?: string;
  last_at?: string;
  duration_ms: number;
  invocations: IndexedInvocation[]; // the newest
  earlier?: number; // how many were before these
  runs: number;
  forks?: { offset: number; at: string }[];
  markers: Marker[];
  marked: Partial<Record<MarkerKind, number>>;
  thinned?: Partial<Record<MarkerKind, number>>; // n: of each 2^n offsets the first marker is left
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

/** What a session amounts to. */
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
  snippet: string; // plain text, what was found between « and »
  rewound?: boolean;
}
