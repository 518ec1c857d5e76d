// The HTTP API of the server that served this page, see docs/http.md.
import type { Event } from "../fold/types";
import type * as wire from "../wire";

/** An error that the server reported, or that the server could not be reached. */
export class ApiError extends Error {
  readonly kind: string; // as in docs/http.md; "unreachable" without a response
  readonly hint: string | undefined;
  readonly status: number; // 0 without a response

  constructor(kind: string, message: string, hint?: string, status = 0) {
    super(message);
    this.name = "ApiError";
    this.kind = kind;
    this.hint = hint;
    this.status = status;
  }
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
}

export interface AtOptions extends CallOptions {
  at?: number | undefined; // only the events before this offset; absent for all
}

type Param = string | number | boolean | string[] | undefined;
type Params = Record<string, Param>;

export function query(params: Params): string {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    const text = Array.isArray(value) ? value.join(",") : value;
    if (text !== undefined && text !== "") q.set(name, String(text));
  }
  const s = q.toString();
  return s && `?${s}`;
}

export function sessionPath(id: string, endpoint = ""): string {
  return `/api/v1/sessions/${encodeURIComponent(id)}${endpoint && `/${endpoint}`}`;
}

async function answer(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch (err) {
    if (init.signal?.aborted) throw err; // the caller has cancelled the request
    throw new ApiError("unreachable", "the server cannot be reached", "check that it is running");
  }
  if (response.ok) return response;
  throw await failure(response);
}

async function failure(response: Response): Promise<ApiError> {
  return errorIn(await response.text().catch(() => ""), response.status);
}

/** The error in a response that is not a success. */
export function errorIn(body: string, status: number): ApiError {
  try {
    const { error } = JSON.parse(body);
    if (typeof error.kind === "string" && typeof error.message === "string") {
      return new ApiError(error.kind, error.message, typeof error.hint === "string" ? error.hint : undefined, status);
    }
  } catch {
    // not an error of the API: a proxy may have answered
  }
  return new ApiError("internal", `the server answered with status ${status}`, undefined, status);
}

async function get<T>(path: string, o?: CallOptions): Promise<T> {
  return (await answer(path, { signal: o?.signal ?? null, headers: { Accept: "application/json" } })).json();
}

async function send<T>(method: string, path: string, body: unknown, o?: CallOptions): Promise<T> {
  const response = await answer(path, {
    method,
    signal: o?.signal ?? null,
    headers: { "Content-Type": "application/json", Accept: "application/json" },
    body: body === undefined ? null : JSON.stringify(body),
  });
  return response.status === 204 ? (undefined as T) : response.json();
}

const post = <T>(path: string, body: unknown, o?: CallOptions) => send<T>("POST", path, body, o);

/** The permission request that the user saw: the answer is for the request at this offset. */
interface AskedPermission {
  id: string;
  offset: number;
  thread?: string;
  invocation?: string;
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
}

export interface EventsQuery {
  from?: number | undefined;
  limit?: number | undefined;
  reverse?: boolean | undefined;
  channel?: string | string[] | undefined;
  thread?: string | string[] | undefined;
  type?: string | string[] | undefined;
  invocation?: string | string[] | undefined;
  view?: "all" | "effective" | undefined;
}

export type EventsPage = wire.Events<Event>;

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

export type TaskBody = wire.Task;
export type RewindBody = wire.Rewind;
export type ForkBody = wire.Fork;

/** A call fails with an ApiError, or with the reason of its aborted signal. */
export const api = {
  sessions: (q: SessionsQuery = {}, o?: CallOptions) => get<wire.Sessions>(`/api/v1/sessions${query({ ...q })}`, o),
  session: (id: string, o?: CallOptions) => get<wire.SessionRow>(sessionPath(id), o),
  create: (body: wire.NewSession = {}, o?: CallOptions) => post<wire.Session>("/api/v1/sessions", body, o),
  rename: (id: string, title: string, o?: CallOptions) =>
    send<wire.Session>("PATCH", sessionPath(id), { title } satisfies wire.Rename, o),
  close: (id: string, o?: CallOptions) => post<wire.SessionRow>(sessionPath(id, "close"), undefined, o),
  remove: (id: string, o?: CallOptions) => send<void>("DELETE", sessionPath(id), undefined, o),

  agents: async (o?: CallOptions) => (await get<wire.Agents>("/api/v1/agents", o)).agents,
  run: (body: TaskBody, o?: CallOptions) => post<wire.Started>("/api/v1/sessions/run", body, o),
  task: (id: string, body: TaskBody, o?: CallOptions) => post<wire.Started>(sessionPath(id, "task"), body, o),
  cancel: (id: string, invocation?: string, o?: CallOptions) =>
    post<wire.Cancelled>(sessionPath(id, "cancel"), invocation && { invocation }, o),
  resume: (id: string, body: wire.Resume = {}, o?: CallOptions) =>
    post<wire.Started>(sessionPath(id, "resume"), body, o),

  /** Appends events, such as a bookmark. */
  append: (id: string, events: Partial<Event> | Partial<Event>[], o?: CallOptions) =>
    post<wire.Appended>(sessionPath(id, "events"), events, o),
  /** Answers a permission request. Without an option, the request is cancelled. */
  answer: (id: string, to: AskedPermission, option?: string, o?: CallOptions): Promise<unknown> =>
    option
      ? post<wire.Answered>(
          `${sessionPath(id, "permissions")}/${encodeURIComponent(to.id)}`,
          { option, offset: to.offset } satisfies wire.Answer,
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

  rewind: (id: string, to: RewindBody, o?: CallOptions) => post<wire.Rewound>(sessionPath(id, "rewind"), to, o),
  undo: (id: string, marker?: string, o?: CallOptions) =>
    post<wire.Rewound>(sessionPath(id, "undo"), marker && { marker }, o),
  clear: (id: string, thread?: string, o?: CallOptions) =>
    post<wire.Rewound>(sessionPath(id, "clear"), thread && { thread }, o),
  overwrite: (id: string, from_offset: number, thread?: string, o?: CallOptions) =>
    post<wire.Rewound>(sessionPath(id, "overwrite"), { from_offset, thread }, o),
  fork: (id: string, body: ForkBody = {}, o?: CallOptions) => post<wire.SessionRow>(sessionPath(id, "fork"), body, o),

  events: (id: string, q: EventsQuery = {}, o?: CallOptions) =>
    get<EventsPage>(sessionPath(id, "events") + query({ ...q }), o),
  snapshot: (id: string, q: SnapshotQuery = {}, o?: CallOptions) =>
    get<wire.Snapshot>(sessionPath(id, "snapshot") + query({ ...q }), o),
  replayIndex: (id: string, o: AtOptions = {}) =>
    get<wire.ReplayIndex>(sessionPath(id, "replay-index") + query({ at: o.at, limit: 1000 }), o),
  summary: (id: string, o: AtOptions = {}) => get<wire.Summary>(sessionPath(id, "summary") + query({ at: o.at }), o),
  branches: (id: string, o: AtOptions = {}) => get<wire.Branches>(sessionPath(id, "branches") + query({ at: o.at }), o),
  instances: (id: string, o: AtOptions = {}) =>
    get<wire.Instances>(sessionPath(id, "instances") + query({ at: o.at }), o),

  search: (q: SearchQuery, o?: CallOptions) => get<wire.SearchResult>(`/api/v1/search${query({ ...q })}`, o),
  diff: (q: { a: string; b: string; at_a?: number; at_b?: number }, o?: CallOptions) =>
    get<wire.Diff>(`/api/v1/diff${query({ ...q })}`, o),

  /** Sends the position of a user. keepalive: the request outlives the page. */
  presence: async (id: string, body: Omit<wire.PresenceNote, "cursor"> & { cursor?: unknown }): Promise<unknown> =>
    (
      await answer(sessionPath(id, "presence"), {
        method: "POST",
        keepalive: true,
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(body),
      })
    ).json(),

  export: async (id: string, body: wire.ExportRequest, o?: CallOptions) =>
    (
      await answer(sessionPath(id, "export"), {
        method: "POST",
        signal: o?.signal ?? null,
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(body),
      })
    ).blob(),
  exportPreview: (id: string, body: wire.ExportRequest, o?: CallOptions) =>
    post<wire.RedactionPreview>(`${sessionPath(id, "export")}?preview=1`, body, o),
};
