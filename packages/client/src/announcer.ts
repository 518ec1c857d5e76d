import type { Cursor } from "./people.ts";

/** The server drops a user after a minute without a request. */
const heartbeatMs = 20_000;
/** A playhead moves many times a second: its position is sent at most this often. */
const moveIntervalMs = 1000;

type Action = "join" | "move" | "leave";

/** Sends the user's position to the server, and repeats it until it is stopped. */
export class Announcer {
  private readonly send: (action: Action, cursor: Cursor) => Promise<unknown>;
  private readonly onError: (error: unknown) => void;
  private cursor: Cursor;
  private pendingMove: ReturnType<typeof setTimeout> | undefined;
  private heartbeat: ReturnType<typeof setInterval> | undefined;

  constructor(
    send: (action: Action, cursor: Cursor) => Promise<unknown>,
    cursor: Cursor,
    onError: (e: unknown) => void,
  ) {
    this.send = send;
    this.cursor = cursor;
    this.onError = onError;
  }

  start(): void {
    this.post("join");
    this.heartbeat = setInterval(() => this.post("move"), heartbeatMs);
  }

  move(cursor: Cursor): void {
    if (JSON.stringify(cursor) === JSON.stringify(this.cursor)) return;
    this.cursor = cursor;
    if (this.heartbeat !== undefined) this.pendingMove ??= setTimeout(() => this.post("move"), moveIntervalMs);
  }

  /** Sends the position again now: the server may have restarted and lost its roster. */
  resend(): void {
    if (this.heartbeat !== undefined) this.post("move");
  }

  stop(): void {
    clearInterval(this.heartbeat);
    this.heartbeat = undefined;
    this.post("leave");
  }

  private post(action: Action): void {
    clearTimeout(this.pendingMove);
    this.pendingMove = undefined;
    const leaving = action === "leave";
    this.send(action, this.cursor).then(
      () => leaving || this.onError(undefined),
      (error) => leaving || this.onError(error), // the next heartbeat tries again
    );
  }
}
