// Every end point of docs/http.md as one function: requests in, answers out.
import type { Event } from "./fold/types.ts";
import { type Call, type CallOptions, type Http, query, sessionPath } from "./http.ts";
import type * as wire from "./wire.ts";

export interface AtOptions extends CallOptions {
  at?: number | undefined; // only the events before this offset; absent for all
}

/** The permission request that the user saw: the answer is for the request at this offset. */
export interface AskedPermission {
  id: string;
  offset?: number;
  thread?: string;
  invocation?: string;
}

/** A producer names itself and numbers its appends, so that it can safely repeat one without an answer. */
export interface Producer {
  id: string;
  epoch: number; // counts its starts, from 0
  seq: number; // counts its appends since that start, from 0
}

export interface AppendOptions extends CallOptions {
  /** Append only if this is the next offset of the session. */
  ifMatch?: number | undefined;
  producer?: Producer | undefined;
}

export interface AnswerOptions extends CallOptions {
  /** The values of the form, by the ids of its fields. */
  input?: wire.JsonObject | undefined;
}

export interface InboxQuery {
  agent?: string | undefined;
  owner?: string | undefined;
  cursor?: string | undefined;
  limit?: number | undefined;
}

export interface UsageQuery {
  from?: string | undefined; // the first day in UTC, such as 2026-01-31
  to?: string | undefined; // the last day
  agent?: string | undefined;
  owner?: string | undefined; // of the sessions
}

export interface SessionsQuery {
  status?: string | undefined;
  agent?: string | undefined;
  owner?: string | undefined;
  parent?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
  q?: string | undefined;
  cursor?: string | undefined;
  limit?: number | undefined;
  label?: string | undefined; // name:value
  without_label?: string | string[] | undefined; // names of labels
  summary?: boolean | undefined; // each row has its summary
  sort?: SessionSort | undefined; // without it, by creation
  order?: "asc" | "desc" | undefined; // without it, the highest first, and titles from A
}

/** What a list of sessions is sorted by. */
export type SessionSort = "created" | "activity" | "title" | "tokens" | "cost" | "duration" | "failures";

export interface EventsQuery {
  from?: number | undefined;
  /** That of an earlier page, instead of `from`: if the session was created again since, the answer is 410. */
  cursor?: string | undefined;
  limit?: number | undefined;
  reverse?: boolean | undefined;
  channel?: string | string[] | undefined;
  thread?: string | string[] | undefined;
  type?: string | string[] | undefined;
  invocation?: string | string[] | undefined;
  view?: "all" | "effective" | undefined;
}

/** A page of events. `next` is where the next page begins; at the head it stays the same. */
export type EventsPage = wire.Events<Event>;

export interface ContextQuery {
  at?: number | undefined;
  instance?: string | undefined;
  thread?: string | undefined;
  limit?: number | undefined;
}

export interface SnapshotQuery {
  at?: number | undefined;
  thread?: string | undefined;
  limit?: number | undefined;
  before?: number | undefined;
}

export interface SearchQuery {
  q: string;
  session?: string | undefined;
  kind?: string | undefined;
  role?: string | undefined;
  status?: string | undefined;
  agent?: string | undefined;
  owner?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface DiffQuery {
  a: string;
  b: string;
  at_a?: number | undefined;
  at_b?: number | undefined;
}

/** Who is logged in. */
export interface Login {
  subject?: string;
  role?: "admin" | "user" | "reader" | "agent";
  expires?: string;
}

const loginHeaders = { Accept: "application/json", "Tapedeck-Login": "1" };

/** A call fails with a TapedeckError, or with the reason of its aborted signal. */
export type Api = ReturnType<typeof createApi>;

export function createApi(http: Http) {
  const get = http.get.bind(http);
  const post = http.post.bind(http);
  const of = (id: string, endpoint: string, o: AtOptions & { limit?: number }): [string, CallOptions] => [
    sessionPath(id, endpoint) + query({ at: o.at, limit: o.limit }),
    { signal: o.signal },
  ];
  const api = {
    sessions: (q: SessionsQuery = {}, o?: CallOptions) => get<wire.Sessions>(`/sessions${query({ ...q })}`, o),
    session: (id: string, o?: CallOptions) => get<wire.SessionRow>(sessionPath(id), o),
    create: (body: wire.NewSession = {}, o?: CallOptions) => post<wire.Session>("/sessions", body, o),
    rename: (id: string, title: string, o?: CallOptions) =>
      http.put<wire.Session>("PATCH", sessionPath(id), { title } satisfies wire.Rename, o),
    /** Changes some labels; null removes one. The others stay. */
    label: (id: string, change_labels: Record<string, string | null>, o?: CallOptions) =>
      http.put<wire.Session>("PATCH", sessionPath(id), { change_labels } satisfies wire.Rename, o),
    close: (id: string, o?: CallOptions) => post<wire.SessionRow>(sessionPath(id, "close"), undefined, o),
    remove: (id: string, o?: CallOptions) => http.put<void>("DELETE", sessionPath(id), undefined, o),

    /** Whose token the browser sends; without members on a server without access control. */
    login: (o?: CallOptions) => http.read<Login>("/login", { ...o, outside: true, headers: loginHeaders }),
    /** Logs a browser out. */
    logout: async (o?: CallOptions) => {
      await http.send("/login", { ...o, method: "DELETE", outside: true, headers: loginHeaders });
    },

    agents: async (o?: CallOptions) => (await get<wire.Agents>("/agents", o)).agents,
    /** Describes the server since its start. */
    stats: (o?: CallOptions) => get<wire.Stats>("/stats", o),
    run: (body: wire.Task, o?: CallOptions) => post<wire.Started>("/sessions/run", body, o),
    task: (id: string, body: wire.Task, o?: CallOptions) => post<wire.Started>(sessionPath(id, "task"), body, o),
    cancel: (id: string, invocation?: string, o?: CallOptions) =>
      post<wire.Cancelled>(sessionPath(id, "cancel"), invocation && { invocation }, o),
    renew: (id: string, invocation: string, o?: CallOptions) =>
      post<wire.Renewed>(sessionPath(id, "renew"), { invocation }, o),
    inputs: async (id: string, thread?: string, o?: CallOptions) =>
      (await get<wire.Inputs>(sessionPath(id, "inputs") + query({ thread }), o)).inputs,
    withdraw: (id: string, input: string, o?: CallOptions) =>
      http.put<wire.Input>("DELETE", `${sessionPath(id, "inputs")}/${encodeURIComponent(input)}`, undefined, o),
    move: (id: string, input: string, before?: string, o?: CallOptions) =>
      http.put<wire.Input>(
        "PATCH",
        `${sessionPath(id, "inputs")}/${encodeURIComponent(input)}`,
        { ...(before ? { before } : {}) } satisfies wire.Move,
        o,
      ),
    take: (id: string, input: string, invocation: string, o?: CallOptions) =>
      post<wire.Taken>(`${sessionPath(id, "inputs")}/${encodeURIComponent(input)}/take`, { invocation }, o),
    resume: (id: string, body: wire.Resume = {}, o?: CallOptions) =>
      post<wire.Started>(sessionPath(id, "resume"), body, o),

    /** Appends events, such as a bookmark: all of them or none. */
    append: (id: string, events: wire.NewEvent | wire.NewEvent[], o: AppendOptions = {}) =>
      post<wire.Appended>(sessionPath(id, "events"), events, { signal: o.signal, headers: conditions(o) }),
    /** Answers a permission request. Without an option, the request is cancelled. */
    answer: (
      id: string,
      to: AskedPermission,
      option?: string,
      { input, ...o }: AnswerOptions = {},
    ): Promise<unknown> =>
      option
        ? post<wire.Answered>(
            `${sessionPath(id, "permissions")}/${encodeURIComponent(to.id)}`,
            {
              option,
              ...(input ? { input } : {}),
              ...(to.offset === undefined ? {} : { offset: to.offset }),
            } satisfies wire.Answer,
            o,
          )
        : api.append(
            id,
            {
              type: "permission.answered",
              ...(to.thread && to.thread !== "main" ? { thread: to.thread } : {}),
              ...(to.invocation ? { invocation: to.invocation } : {}),
              data: { id: to.id, outcome: "cancelled" },
            },
            o,
          ),

    /** The questions of all sessions that wait for people, newest first. */
    inbox: (q: InboxQuery = {}, o?: CallOptions) => get<wire.Inbox>(`/inbox${query({ ...q })}`, o),

    /** What the ended runs of all sessions used: in all, by day, by agent and by model. */
    usage: (q: UsageQuery = {}, o?: CallOptions) => get<wire.Usage>(`/usage${query({ ...q })}`, o),

    workflows: async (o?: CallOptions) => (await get<wire.Workflows>("/workflows", o)).workflows,
    /** A stored workflow; without a version, the current one. */
    workflow: (name: string, version?: string, o?: CallOptions) =>
      get<wire.Diagram>(workflowPath(name) + query({ version }), o),
    putWorkflow: (name: string, bpmn: string, o?: CallOptions) =>
      http.put<wire.Diagram>("PUT", workflowPath(name), { bpmn } satisfies wire.NewWorkflow, o),
    removeWorkflow: (name: string, o?: CallOptions) => http.put<void>("DELETE", workflowPath(name), undefined, o),
    checkWorkflow: (body: wire.CheckWorkflow, o?: CallOptions) => post<wire.Diagram>("/workflows/check", body, o),
    runWorkflow: (body: wire.RunWorkflow, o?: CallOptions) => post<wire.Started>("/workflows/run", body, o),
    /** Sends a message to the workflow that runs in a session. */
    message: (id: string, body: wire.SendMessage, o?: CallOptions) =>
      post<wire.MessageSent>(sessionPath(id, "messages"), body, o),

    rewind: (id: string, to: wire.Rewind, o?: CallOptions) => post<wire.Rewound>(sessionPath(id, "rewind"), to, o),
    undo: (id: string, marker?: string, o?: CallOptions) =>
      post<wire.Rewound>(sessionPath(id, "undo"), marker && { marker }, o),
    clear: (id: string, thread?: string, o?: CallOptions) =>
      post<wire.Rewound>(sessionPath(id, "clear"), thread && { thread }, o),
    overwrite: (id: string, from_offset: number, thread?: string, o?: CallOptions) =>
      post<wire.Rewound>(sessionPath(id, "overwrite"), { from_offset, thread }, o),
    fork: (id: string, body: wire.Fork = {}, o?: CallOptions) =>
      post<wire.SessionRow>(sessionPath(id, "fork"), body, o),

    events: (id: string, { cursor, ...q }: EventsQuery = {}, o?: CallOptions) =>
      get<EventsPage>(sessionPath(id, "events") + query({ ...q, from: cursor ?? q.from }), o),
    snapshot: (id: string, q: SnapshotQuery = {}, o?: CallOptions) =>
      get<wire.Snapshot>(sessionPath(id, "snapshot") + query({ ...q }), o),
    replayIndex: (id: string, o: AtOptions = {}) =>
      get<wire.ReplayIndex>(...of(id, "replay-index", { ...o, limit: 1000 })),
    summary: (id: string, o: AtOptions = {}) => get<wire.Summary>(...of(id, "summary", o)),
    /** The input of the next call of a model: the newest 128 messages, or `limit`. */
    context: (id: string, q: ContextQuery = {}, o?: CallOptions) =>
      get<wire.Context>(sessionPath(id, "context") + query({ ...q }), o),
    branches: (id: string, o: AtOptions = {}) => get<wire.Branches>(...of(id, "branches", o)),
    instances: (id: string, o: AtOptions = {}) => get<wire.Instances>(...of(id, "instances", o)),

    search: (q: SearchQuery, o?: CallOptions) => get<wire.SearchResult>(`/search${query({ ...q })}`, o),
    diff: (q: DiffQuery, o?: CallOptions) => get<wire.Diff>(`/diff${query({ ...q })}`, o),

    /** Sends the position of a user. The request outlives the page. */
    presence: (id: string, body: Omit<wire.PresenceNote, "cursor"> & { cursor?: unknown }, o?: CallOptions) =>
      post<wire.Present>(sessionPath(id, "presence"), body, { ...o, keepalive: true }),

    /** The tokens of a session that have a name. */
    tokens: async (id: string, o?: CallOptions) => (await get<wire.SessionTokens>(sessionPath(id, "tokens"), o)).tokens,
    issueToken: (id: string, body: wire.NewToken, o?: CallOptions) =>
      post<wire.IssuedToken>(sessionPath(id, "tokens"), body, o),
    /** Revokes one token of a session; without an id, all of them. An empty id is not_found. */
    revokeToken: (id: string, token?: string, o?: CallOptions) =>
      http.put<void>(
        "DELETE",
        sessionPath(id, "tokens") + (token === undefined ? "" : `/${encodeURIComponent(token)}`),
        undefined,
        o,
      ),

    export: async (id: string, body: wire.ExportRequest, o?: CallOptions) =>
      (await http.send(sessionPath(id, "export"), jsonCall(body, o))).blob(),
    exportPreview: (id: string, body: wire.ExportRequest, o?: CallOptions) =>
      post<wire.RedactionPreview>(`${sessionPath(id, "export")}?preview=1`, body, o),
  };
  return api;
}

const workflowPath = (name: string) => `/workflows/${encodeURIComponent(name)}`;

function jsonCall(body: unknown, o?: CallOptions): Call {
  return {
    ...o,
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
}

function conditions({ ifMatch, producer }: AppendOptions): Record<string, string> {
  return {
    ...(ifMatch === undefined ? {} : { "If-Match": String(ifMatch) }),
    ...(producer
      ? {
          "Producer-Id": producer.id,
          "Producer-Epoch": String(producer.epoch),
          "Producer-Seq": String(producer.seq),
        }
      : {}),
  };
}
