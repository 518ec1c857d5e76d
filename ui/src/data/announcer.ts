import type { Cursor } from "./people";

/** Whoever says nothing for a minute has left. */
const everyMs = 20_000;
/** A playhead moves many times a second: where it rests is told. */
const restMs = 1000;

type Action = "join" | "move" | "leave";

/** Says where somebody is, again and again until they go. */
export class Announcer {
  private readonly send: (action: Action, cursor: Cursor) => Promise<unknown>;
  private readonly onError: (error: unknown) => void;
  private cursor: Cursor;
  private rest: ReturnType<typeof setTimeout> | undefined;
  private beat: ReturnType<typeof setInterval> | undefined;

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
    this.tell("join");
    this.beat = setInterval(() => this.tell("move"), everyMs);
  }

  move(cursor: Cursor): void {
    if (JSON.stringify(cursor) === JSON.stringify(this.cursor)) return;
    this.cursor = cursor;
    if (this.beat !== undefined) this.rest ??= setTimeout(() => this.tell("move"), restMs);
  }

  /** Says it once more now: the server may have been away, and knows nobody. */
  again(): void {
    if (this.beat !== undefined) this.tell("move");
  }

  stop(): void {
    clearInterval(this.beat);
    this.beat = undefined;
    this.tell("leave");
  }

  private tell(action: Action): void {
    clearTimeout(this.rest);
    this.rest = undefined;
    const left = action === "leave";
    this.send(action, this.cursor).then(
      () => left || this.onError(undefined),
      (error) => left || this.onError(error), // the next beat tries again
    );
  }
}
