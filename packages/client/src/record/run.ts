import { type Environment, surroundings } from "../environment.ts";
import { TapedeckError } from "../errors.ts";
import type { MaybePromise } from "../http.ts";
import type { Session } from "../session.ts";
import type { JsonObject, NewEvent, Taken } from "../wire.ts";
import { defaultLeaseMs, Recording, type RecordingOptions, type RunStatus } from "./recording.ts";

export interface RunOptions extends RecordingOptions {
  /** The name of the agent in the log. */
  agent?: string | undefined;
  /** Who has asked, such as `user:ada`. */
  actor?: string | undefined;
  /** Without it, `main`. */
  thread?: string | undefined;
  invocation?: string | undefined;
  /** The id of the message of the task. */
  messageId?: string | undefined;
  model?: string | undefined;
  /** Cancels the run. */
  signal?: AbortSignal | undefined;
}

export interface AskOptions {
  /** What the user may choose; without them, `allow` and `reject`. */
  options?: AskedOption[] | undefined;
  /** The id of the tool call that the question is about. */
  toolCall?: string | undefined;
  action?: JsonObject | undefined;
  /** After this time it answers undefined; the question stays until the run ends. */
  timeoutMs?: number | undefined;
}

export interface AskedOption {
  id: string;
  name: string;
  kind: "allow_once" | "allow_always" | "reject_once" | "reject_always";
}

const allowOrReject: AskedOption[] = [
  { id: "allow", name: "Allow", kind: "allow_once" },
  { id: "reject", name: "Reject", kind: "reject_once" },
];

/**
 * A run of an agent in this program, see `record`. What it says is sent in the background, in
 * batches. Its methods keep their order without `await`; with it, a writer waits while much is
 * pending. They throw when the run has ended, also by somebody else.
 */
export class Run {
  /** Aborts when somebody cancels the run on any screen, or it cannot be recorded any more. Give it to the model. */
  readonly signal: AbortSignal;
  private readonly recording: Recording;
  private readonly o: RunOptions;
  private readonly env: Environment;
  private turn = 0;
  private open: { kind: "text" | "thought"; id: string } | undefined;
  private message = ""; // the newest text message of the turn
  private readonly calls = new Set<string>(); // whose arguments are open
  private last: Promise<void> | undefined; // the end

  private constructor(recording: Recording, o: RunOptions) {
    [this.recording, this.o, this.env] = [recording, o, o.environment ?? surroundings];
    this.signal = recording.signal;
  }

  /** Begins a run, with the task as a message of the user. It fails if the thread is busy. */
  static async begin(session: Session, task: string | undefined, o: RunOptions = {}): Promise<Run> {
    const invocation = o.invocation ?? newId("inv_");
    const { agent, model, thread = "main" } = o;
    const place = { invocation, ...(o.thread ? { thread: o.thread } : {}) };
    const tapedeck = { ...(agent ? { agent } : {}), ...(model ? { model } : {}), leaseMs: o.leaseMs ?? defaultLeaseMs };
    const first: NewEvent[] = [];
    if (task !== undefined) {
      const message = { id: o.messageId ?? newId("msg_"), role: "user", content: words(task) };
      first.push({ ...place, ...(o.actor ? { actor: o.actor } : {}), type: "message.added", data: { message } });
    }
    const data = { threadId: thread, runId: invocation, metadata: { tapedeck } };
    first.push({ ...place, ...(agent ? { actor: `agent:${agent}` } : {}), type: "RUN_STARTED", data });
    return new Run(await Recording.begin(session, invocation, first, o), o);
  }

  get invocation(): string {
    return this.recording.invocation;
  }

  /** `running`, or how the run has ended. */
  get status(): RunStatus {
    return this.recording.status;
  }

  /** The offset of the first event. */
  get offset(): number {
    return this.recording.offset;
  }

  /** Says a piece of text. It continues the open message, or opens one. */
  text(delta: string): Promise<void> {
    return this.say("text", words(delta));
  }

  /** Thinks a piece of text. */
  thought(delta: string): Promise<void> {
    return this.say("thought", words(delta));
  }

  /** Ends the open message. The next text opens another one. */
  endMessage(): Promise<void> {
    return this.put(this.closed());
  }

  /** Begins the next call of the model: later events have its number, from 1. */
  nextTurn(): Promise<void> {
    const done = this.put(this.closed());
    this.turn++;
    this.message = "";
    return done;
  }

  /**
   * Repeats the step: what follows replaces what the agent has said and called since the newest
   * result of a tool, or since the beginning of the run. The log keeps both.
   */
  attempt(reason = ""): Promise<void> {
    const why = words(reason);
    const done = this.put([this.made("attempt.superseded", why ? { reason: why } : {})]);
    [this.open, this.message] = [undefined, ""];
    this.calls.clear();
    return done;
  }

  /**
   * Calls a tool: what `body` returns is its result. If it throws, the result is the text of the
   * error, marked as failed, and the error continues to the caller.
   */
  async tool<T>(
    name: string,
    args: unknown,
    body: (call: { id: string }) => MaybePromise<T>,
    o: { id?: string } = {},
  ): Promise<T> {
    const id = o.id ?? newId("call_");
    const text = textOf(args ?? {});
    this.beginTool(id, name);
    this.toolArguments(id, text);
    const since = this.env.now();
    await this.put(this.endedCall(id));
    const durationMs = () => Math.max(0, Math.round(this.env.now() - since)); // a clock may be set back
    let result: T;
    try {
      result = await body({ id });
    } catch (error) {
      if (!this.signal.aborted && this.status === "running") {
        const failed = { failed: true, durationMs: durationMs() };
        await this.toolResult(id, messageOf(error), failed);
      }
      throw error;
    }
    await this.toolResult(id, result, { durationMs: durationMs() });
    return result;
  }

  /** Begins a tool call whose arguments follow in pieces. `tool` is the simple way. */
  beginTool(id: string, name: string): Promise<void> {
    const parent = this.message ? { parentMessageId: this.message } : {};
    const start = this.made("TOOL_CALL_START", { toolCallId: id, toolCallName: name, ...parent });
    const done = this.put([...this.closed(), start]);
    this.calls.add(id);
    return done;
  }

  /** Adds a piece of the arguments of a tool call. */
  toolArguments(id: string, delta: string): Promise<void> {
    return this.put([this.made("TOOL_CALL_ARGS", { toolCallId: id, delta: words(delta) })]);
  }

  /** Records the result of a tool call; anything but a string is recorded as JSON. */
  toolResult(id: string, result: unknown, o: { failed?: boolean; durationMs?: number } = {}): Promise<void> {
    const { durationMs } = o;
    const tapedeck = { ...(o.failed ? { error: true } : {}), ...(durationMs === undefined ? {} : { durationMs }) };
    const content = typeof result === "string" ? words(result) : result === undefined ? "" : textOf(result);
    const data = { messageId: newId("msg_"), toolCallId: id, content, role: "tool", metadata: { tapedeck } };
    return this.put([...this.endedCall(id), this.made("TOOL_CALL_RESULT", data)]);
  }

  /** Records a `CUSTOM` event; the name begins with that of a vendor, such as `acme.progress`. */
  custom(name: string, value: unknown): Promise<void> {
    return this.put([this.made("CUSTOM", { name, value: JSON.parse(textOf(value)) })]);
  }

  /** Records any other event of docs/events.md. It is durable then; a refusal is an error here, and the run continues. */
  async event(type: string, data: object): Promise<void> {
    if (type === "RUN_FINISHED" || type === "RUN_ERROR")
      throw new TapedeckError("invalid", `${type} ends the run`, { hint: "call finish or fail, or return" });
    await this.recording.append(this.made(type, JSON.parse(textOf(data)) as JsonObject));
  }

  /** Replaces the plan: its steps with their status. */
  plan(entries: { content: string; status: "pending" | "in_progress" | "completed" }[]): Promise<void> {
    return this.event("plan.updated", { entries });
  }

  /** Records what one call of the model used. */
  usage(used: {
    model?: string;
    provider?: string;
    inputTokens?: number;
    outputTokens?: number;
    costUsd?: number;
  }): Promise<void> {
    return this.event("usage.reported", used);
  }

  /** Asks a user, and waits for the answer from any screen: the id of the chosen option. */
  async ask(message: string, o: AskOptions = {}): Promise<string | undefined> {
    const id = newId("perm_");
    const { options = allowOrReject, toolCall, action } = o;
    const about = { ...(toolCall ? { toolCallId: toolCall } : {}), ...(action ? { action } : {}) };
    await this.event("permission.requested", { id, message: words(message), options, ...about });
    return this.recording.answer(id, o.timeoutMs);
  }

  /** Waits until everything so far is durable. */
  flush(): Promise<void> {
    return this.recording.flush();
  }

  /**
   * Takes a task that waits for this program into the run, and answers with its message. The open
   * message ends, and the log has all that the agent has said before it.
   */
  async take(input: string): Promise<Taken> {
    await this.endMessage();
    await this.flush();
    return this.recording.session.take(input, this.invocation);
  }

  /** Ends the run as complete, with a result of any JSON. `record` does it without a result. */
  finish(result?: unknown): Promise<void> {
    const more = result === undefined ? {} : { result: JSON.parse(textOf(result)) };
    return this.end("RUN_FINISHED", { ...this.ids(), ...more }, "complete");
  }

  /** Ends the run as failed. */
  fail(message: string, code?: string): Promise<void> {
    return this.end("RUN_ERROR", failure(message, code), "failed");
  }

  /** Ends the run as cancelled. It can be resumed. */
  cancel(): Promise<void> {
    const outcome = { type: "cancelled" };
    return this.end(
      "RUN_FINISHED",
      { ...this.ids(), outcome, metadata: { tapedeck: { resumable: true } } },
      "cancelled",
    );
  }

  /** Ends the run with what ended its agent, if it is open. An event that was refused must not leave it open. */
  async endWith(error: unknown): Promise<void> {
    if (this.last) await this.last;
    else if (this.status === "interrupted") {
      await this.recording.abandon([this.made("RUN_ERROR", failure(messageOf(error), nameOf(error)))]);
    } else if (this.status === "running") {
      if (this.o.signal?.aborted || nameOf(error) === "AbortError") await this.cancel();
      else await this.fail(messageOf(error), nameOf(error));
    }
  }

  /** Waits for the end that the agent has named, or ends the run as complete. */
  endOf(): Promise<void> {
    return this.last ?? this.finish();
  }

  /** Aborts `signal`, for the caller. */
  abort(reason: unknown): void {
    this.recording.abort(reason);
  }

  private end(type: string, data: JsonObject, status: RunStatus): Promise<void> {
    const calls = [...this.calls].flatMap((id) => this.endedCall(id));
    const done = this.recording.end([...this.closed(), ...calls, this.made(type, data)], status);
    done.catch(() => undefined); // record waits for it, too
    this.last ??= done;
    return done;
  }

  private ids() {
    return { threadId: this.o.thread ?? "main", runId: this.invocation };
  }

  private made(type: string, data: JsonObject): NewEvent {
    const { agent, thread } = this.o;
    return {
      type,
      invocation: this.invocation,
      ...(this.turn > 0 ? { turn: this.turn } : {}),
      ...(thread ? { thread } : {}),
      ...(agent ? { actor: `agent:${agent}` } : {}),
      data,
    };
  }

  private put(events: NewEvent[]): Promise<void> {
    return this.recording.put(events);
  }

  private say(kind: "text" | "thought", delta: string): Promise<void> {
    const events: NewEvent[] = [];
    if (this.open?.kind !== kind) events.push(...this.closed(), ...this.opened(kind));
    const id = this.open!.id;
    const type = kind === "text" ? "TEXT_MESSAGE_CONTENT" : "REASONING_MESSAGE_CONTENT";
    if (delta) events.push(this.made(type, { messageId: id, delta }));
    return this.put(events);
  }

  private opened(kind: "text" | "thought"): NewEvent[] {
    const messageId = newId("msg_");
    this.open = { kind, id: messageId };
    if (kind === "text") {
      this.message = messageId;
      return [this.made("TEXT_MESSAGE_START", { messageId, role: "assistant" })];
    }
    const start = this.made("REASONING_MESSAGE_START", { messageId, role: "reasoning" });
    return [this.made("REASONING_START", { messageId }), start];
  }

  private closed(): NewEvent[] {
    if (!this.open) return [];
    const { kind, id: messageId } = this.open;
    this.open = undefined;
    const types = kind === "text" ? ["TEXT_MESSAGE_END"] : ["REASONING_MESSAGE_END", "REASONING_END"];
    return types.map((type) => this.made(type, { messageId }));
  }

  private endedCall(id: string): NewEvent[] {
    return this.calls.delete(id) ? [this.made("TOOL_CALL_END", { toolCallId: id })] : [];
  }
}

/**
 * Records a run of an agent in this program: `body` is the agent. The task is durable when it is
 * called, and everything else when `record` answers, with what `body` has returned.
 *
 * The run ends with exactly one terminal event: complete, or failed with the text of what `body`
 * throws, or cancelled if that is an AbortError or `o.signal` aborts. If somebody else cancels the
 * run, `run.signal` aborts, and `record` fails with its reason, an AbortError.
 */
export async function record<T>(
  session: Session,
  task: string | undefined,
  body: (run: Run) => MaybePromise<T>,
  o: RunOptions = {},
): Promise<T> {
  const { signal } = o;
  signal?.throwIfAborted();
  const run = await Run.begin(session, task, o);
  const stop = () => run.abort(signal?.reason);
  signal?.addEventListener("abort", stop);
  if (signal?.aborted) stop();
  try {
    const result = await body(run);
    if (run.signal.aborted) throw run.signal.reason;
    await run.endOf();
    return result;
  } catch (error) {
    const why = run.signal.aborted ? run.signal.reason : error;
    await run.endWith(why).catch((unrecorded: unknown) => {
      if (why instanceof Error && why !== unrecorded) why.cause ??= unrecorded;
    });
    throw why;
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}

function newId(prefix: string): string {
  return prefix + crypto.randomUUID().replaceAll("-", "");
}

/** A text that is valid UTF-8: half of a pair of surrogates is replaced. */
function words(text: string): string {
  if (typeof text !== "string") throw new TapedeckError("invalid", `a text is a string, not ${typeof text}`);
  return text.toWellFormed();
}

function textOf(value: unknown): string {
  try {
    return JSON.stringify(value, (_, v) => (typeof v === "string" ? v.toWellFormed() : v)) ?? "null";
  } catch (cause) {
    throw new TapedeckError("invalid", `this is not JSON: ${messageOf(cause)}`, { cause });
  }
}

function failure(message: string, code?: string): JsonObject {
  return { message: message.toWellFormed() || "the agent failed", ...(code ? { code } : {}) };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}

function nameOf(error: unknown): string | undefined {
  return error instanceof Error ? error.name : undefined;
}
