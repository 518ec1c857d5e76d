import type { Problem } from "./wire.ts";

/** The kinds of docs/http.md, and three that only a client can see. A newer server may have others. */
export type ErrorKind =
  | "invalid"
  | "unauthorized"
  | "forbidden"
  | "not_found"
  | "conflict"
  | "gone"
  | "replaced" // the session has another history than the one that was followed
  | "precondition"
  | "too_large"
  | "unsupported"
  | "limited"
  | "internal"
  | "unavailable"
  | "unreachable" // no answer, or one that was cut off
  | "protocol" // an answer that is not one of a Tapedeck server
  | "version" // the server is older or newer than this client can read
  | (string & {});

export interface ErrorDetails {
  hint?: string | undefined;
  problems?: Problem[] | undefined;
  /** Of the HTTP answer; 0 without an answer. */
  status?: number | undefined;
  /** How long the server asks to wait, in milliseconds. */
  retryAfterMs?: number | undefined;
  cause?: unknown;
}

/** Every failure of a call: a refusal of the server, or an answer that did not come. */
export class TapedeckError extends Error {
  readonly kind: ErrorKind;
  /** What to do about it, if there is something to say. */
  readonly hint: string | undefined;
  /** Of a refused workflow: all that is wrong with it, with lines and elements. */
  readonly problems: readonly Problem[];
  /** Of the HTTP answer; 0 without an answer. */
  readonly status: number;
  /** How long the server asks to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(kind: ErrorKind, message: string, d: ErrorDetails = {}) {
    super(message, d.cause === undefined ? undefined : { cause: d.cause });
    this.name = "TapedeckError";
    this.kind = kind;
    this.hint = d.hint;
    this.problems = d.problems ?? [];
    this.status = d.status ?? 0;
    this.retryAfterMs = d.retryAfterMs;
  }

  /** Whether the same request may succeed later, without a change. */
  get retryable(): boolean {
    return this.kind === "unreachable" || this.status === 408 || this.status === 429 || this.status >= 500;
  }
}

const kindsOf: Record<number, ErrorKind> = {
  400: "invalid",
  401: "unauthorized",
  403: "forbidden",
  404: "not_found",
  408: "invalid",
  409: "conflict",
  410: "gone",
  412: "precondition",
  413: "too_large",
  415: "unsupported",
  429: "limited",
};

/** The error in an answer that is not a success. A proxy may have written it, so it need not be JSON. */
export function errorIn(body: string, status: number, retryAfterMs?: number): TapedeckError {
  try {
    const { error } = JSON.parse(body);
    if (typeof error.kind === "string" && typeof error.message === "string") {
      const hint = typeof error.hint === "string" ? error.hint : undefined;
      const problems = Array.isArray(error.problems) ? error.problems.filter(isProblem) : undefined;
      return new TapedeckError(error.kind, error.message, { hint, problems, status, retryAfterMs });
    }
  } catch {
    // not an error of the API
  }
  const kind = kindsOf[status] ?? ([502, 503, 504, 507].includes(status) ? "unavailable" : "internal");
  return new TapedeckError(kind, `the server answered with status ${status}`, {
    hint: "the answer is not one of Tapedeck: a proxy may have written it",
    status,
    retryAfterMs,
  });
}

function isProblem(p: unknown): p is Problem {
  return typeof p === "object" && p !== null && "message" in p && typeof p.message === "string";
}

// A proxy may ask for more, a clock may be off, and a timer of more than 24 days runs at once.
const longestRetryMs = 300_000;

/** The wait that a Retry-After asks for: seconds, or a date. `now` is the date of the answer. */
export function retryAfter(value: string | null, now: number): number | undefined {
  if (!value) return undefined;
  const seconds = Number(value);
  const ms = Number.isNaN(seconds) ? Date.parse(value) - now : seconds * 1000;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(0, ms), longestRetryMs);
}
