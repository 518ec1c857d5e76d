import { errorIn, retryAfter, TapedeckError } from "./errors.ts";

/** The generation of the HTTP API that this client speaks, see the header Tapedeck-Api. */
export const generation = 1;

export type MaybePromise<T> = T | Promise<T>;

export interface ClientOptions {
  /** The address of the server, with its path if a proxy puts it below one. It may be relative; a request then needs a page. */
  url: string | URL;
  /** The fetch to use; without it, the global one. */
  fetch?: typeof fetch;
  /** Headers of every request, such as Authorization. A function is called for every attempt, so a token can be renewed. */
  headers?: HeadersInit | (() => MaybePromise<HeadersInit>);
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
}

export type Params = Record<string, string | number | boolean | readonly string[] | undefined>;

/** The parameters as a query with its question mark; empty ones are left out. */
export function query(params: Params): string {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    const text = Array.isArray(value) ? value.join(",") : value;
    if (text !== undefined && text !== "") q.set(name, String(text));
  }
  const s = q.toString();
  return s && `?${s}`;
}

/** The path of a session below /api/v1. */
export function sessionPath(id: string, endpoint = ""): string {
  return `/sessions/${encodeURIComponent(id)}${endpoint && `/${endpoint}`}`;
}

export interface Call extends CallOptions {
  method?: string;
  headers?: Record<string, string>;
  body?: BodyInit | null;
  keepalive?: boolean;
  /** The path is one of the server, not of the API. */
  outside?: boolean;
}

/** The requests of one client: its address, its headers, and its errors. */
export class Http {
  private readonly options: ClientOptions;
  private address: string | undefined;

  constructor(o: ClientOptions) {
    this.options = o;
    // A page that is drawn on a server makes its clients there, too, where a relative address means nothing yet.
    if (globalThis.location !== undefined || isAbsolute(o.url)) this.address = addressOf(o.url);
  }

  /** The address of the server, without a slash at its end. It fails if that is relative, and nobody knows to what. */
  get root(): string {
    this.address ??= addressOf(this.options.url);
    return this.address;
  }

  /** The address of the API. */
  get base(): string {
    return `${this.root}/api/v1`;
  }

  /** The answer to a request, whatever its status. It fails if there is none. */
  async open(path: string, c: Call = {}): Promise<Response> {
    const headers = await this.headersOf(c);
    const response = await this.fetch(path, headers, c);
    if (response.status !== 401 || typeof this.options.headers !== "function") return checked(response);
    const renewed = await this.headersOf(c); // the token may have expired meanwhile
    if (same(headers, renewed)) return response;
    await response.body?.cancel().catch(() => undefined);
    return checked(await this.fetch(path, renewed, c));
  }

  /** The headers of a request, with those of the options. */
  async headersOf(c: Call): Promise<Headers> {
    const all = new Headers(await this.given(c.signal));
    for (const [name, value] of Object.entries(c.headers ?? {})) all.set(name, value);
    return all;
  }

  private async given(signal: AbortSignal | undefined): Promise<HeadersInit | undefined> {
    const { headers } = this.options;
    if (typeof headers !== "function") return headers;
    try {
      return await unless(signal, headers());
    } catch (cause) {
      if (cause instanceof TapedeckError || signal?.aborted) throw cause;
      throw new TapedeckError("unreachable", "the option headers failed", {
        hint: cause instanceof Error ? cause.message : undefined,
        cause,
      });
    }
  }

  private async fetch(path: string, headers: Headers, c: Call): Promise<Response> {
    const { fetch = globalThis.fetch } = this.options;
    const address = (c.outside ? this.root : this.base) + path;
    try {
      return await fetch(address, {
        method: c.method ?? "GET",
        headers,
        body: c.body ?? null,
        signal: c.signal ?? null,
        // Of two tabs with the same stream, Chromium's cache lets one wait for the other.
        ...(globalThis.document && headers.get("Accept")?.startsWith("text/event-stream") ? { cache: "no-store" } : {}),
        ...(c.keepalive ? { keepalive: true } : {}),
      });
    } catch (cause) {
      if (c.signal?.aborted) throw cause; // the caller has cancelled the request
      throw new TapedeckError("unreachable", "the server cannot be reached", {
        hint: "check that it is running",
        cause,
      });
    }
  }

  /** The answer to a request that succeeded. */
  async send(path: string, c: Call = {}): Promise<Response> {
    const response = await this.open(path, c);
    if (response.ok) return response;
    throw await failure(response);
  }

  /** The JSON of an answer. */
  async read<T>(path: string, c: Call): Promise<T> {
    return json(await this.send(path, c), c.signal);
  }

  get<T>(path: string, o: CallOptions = {}): Promise<T> {
    return this.read(path, { signal: o.signal, headers: { Accept: "application/json" } });
  }

  async put<T>(method: string, path: string, body: unknown, o: Call = {}): Promise<T> {
    const response = await this.send(path, {
      ...o,
      method,
      headers: { "Content-Type": "application/json", Accept: "application/json", ...o.headers },
      body: body === undefined ? null : JSON.stringify(body),
    });
    return response.status === 204 ? (undefined as T) : json(response, o.signal);
  }

  post<T>(path: string, body: unknown, o?: Call): Promise<T> {
    return this.put("POST", path, body, o);
  }
}

/** The error in an answer that is not a success. */
export async function failure(response: Response): Promise<TapedeckError> {
  const { headers } = response;
  const now = Date.parse(headers.get("Date") ?? ""); // the clock of the server, because that of a device may be off
  const wait = retryAfter(headers.get("Retry-After"), Number.isNaN(now) ? Date.now() : now);
  return errorIn(await response.text().catch(() => ""), response.status, wait);
}

/** Whether an answer has this content type. */
export function isType(response: Response, type: string): boolean {
  return (response.headers.get("Content-Type") ?? "").toLowerCase().startsWith(type);
}

/** The error of an answer with a content type that was not asked for: mostly the page of a proxy. */
export function foreign(response: Response, wanted: string): TapedeckError {
  const type = response.headers.get("Content-Type")?.split(";")[0] || "no content type";
  return new TapedeckError("protocol", `the server answered with ${type}, not with ${wanted}`, {
    hint: "a proxy may have answered: is a Tapedeck server at this address?",
    status: response.status,
  });
}

async function json<T>(response: Response, signal?: AbortSignal): Promise<T> {
  if (!isType(response, "application/json")) throw foreign(response, "JSON");
  let text: string;
  try {
    text = await response.text();
  } catch (cause) {
    if (signal?.aborted) throw cause;
    throw new TapedeckError("unreachable", "the connection was lost before the end of the answer", { cause });
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new TapedeckError("protocol", "the server answered with JSON that has an error", {
      status: response.status,
      cause,
    });
  }
  // Every answer of the API is an object.
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw foreign(response, "a JSON object");
  return value as T;
}

/** Refuses the answer of a server that speaks another generation of the API. Older servers do not name theirs. */
function checked(response: Response): Response {
  const named = response.headers.get("Tapedeck-Api");
  if (named === null || Number(named) === generation) return response;
  const newer = Number(named) > generation;
  throw new TapedeckError(
    "version",
    `the server speaks generation ${named} of the API, this client speaks ${generation}`,
    { hint: newer ? "update this client, or load the page again" : "update the server", status: response.status },
  );
}

/** What a promise gives, unless the signal aborts before. */
async function unless<T>(signal: AbortSignal | undefined, p: MaybePromise<T>): Promise<T> {
  if (!signal) return p;
  let stop = () => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    signal.addEventListener("abort", stop);
    if (signal.aborted) stop();
  });
  try {
    return await Promise.race([p, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

function same(a: Headers, b: Headers): boolean {
  return JSON.stringify([...a]) === JSON.stringify([...b]);
}

/** Whether an address says where it is by itself: it has a scheme. */
function isAbsolute(url: string | URL): boolean {
  return /^[a-z][a-z0-9+.-]*:/i.test(String(url));
}

/** The address of a server, without query, fragment and the slash at its end. */
function addressOf(given: string | URL): string {
  let url: URL;
  try {
    url = new URL(given, globalThis.location?.href);
  } catch (cause) {
    const relative = globalThis.location === undefined && !isAbsolute(given);
    throw new TapedeckError("invalid", `the address ${given} is ${relative ? "relative" : "not a URL"}`, {
      hint: `${relative ? "outside of a page " : ""}write it with its scheme, such as http://127.0.0.1:4747`,
      cause,
    });
  }
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new TapedeckError("invalid", `the address ${url.href} is not one of http or https`);
  if (url.username || url.password)
    throw new TapedeckError("invalid", "the address contains a user or a password", {
      hint: "send credentials with the option headers",
    });
  return (url.origin + url.pathname).replace(/\/+$/, "");
}
