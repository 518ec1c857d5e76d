import { type NewEvent, TapedeckError } from "@tapedeck/client";
import type { Chunk } from "../chunks.ts";

interface Call {
  /** Whether any of its arguments have been recorded. */
  begun: boolean;
  /** The arguments are complete. */
  whole: boolean;
  answered: boolean;
}

/**
 * Turns the chunks of one stream into the events of one run, which has begun. The server does the same with the
 * streams that are sent to `/events`: the tests compare both.
 */
export class Recorder {
  /** The last chunk was recorded. */
  ended = false;
  private readonly run: string;
  private readonly actor: string;
  private turn = 0;
  private count = 0; // of the ids that it made
  private readonly parts = new Map<string, string>(); // by kind and id of the open parts: the id in the log
  private readonly calls = new Map<string, Call>();
  private readonly interrupts: object[] = [];
  private events: NewEvent[] = [];

  constructor(run: string, actor: string) {
    [this.run, this.actor] = [run, actor];
  }

  /** The events of a chunk. A chunk of a later version has none. */
  add(c: Chunk): NewEvent[] {
    if (this.ended) return [];
    const [kind = ""] = c.type.split("-");
    if (c.type === "start-step") this.turn++;
    else if (c.type === "steering-message") this.steer(c);
    else if (c.type === "finish" || c.type === "abort" || c.type === "error") this.end(c);
    else if (wholes.has(c.type) || (kind === "data" && c.type.length > "data-".length)) this.whole(c);
    else if (kind === "text" || kind === "reasoning") this.part(c, kind);
    else if (kind === "tool") this.tool(c);
    return this.take();
  }

  /** The events that end the run with an error; none if it has ended. */
  fail(message: string, code?: string): NewEvent[] {
    if (!this.ended) this.putError(message, code);
    return this.take();
  }

  private putError(message: string, code?: string): void {
    this.put("RUN_ERROR", { message: message || "the run failed", ...(code ? { code } : {}) });
    this.ended = true;
  }

  private put(type: string, data: object, actor = this.actor): void {
    const turn = this.turn > 0 ? { turn: this.turn } : {};
    this.events.push({ type, data, invocation: this.run, actor, ...turn } as NewEvent);
  }

  private take(): NewEvent[] {
    const { events } = this;
    this.events = [];
    return events;
  }

  private newId(): string {
    return `${this.run}:${++this.count}`;
  }

  private part(c: Chunk, kind: "text" | "reasoning"): void {
    const key = kind + c.id;
    const open = this.parts.get(key);
    const step = c.type.slice(kind.length + 1);
    if (step === "start") {
      if (open !== undefined) this.endPart(key);
      this.startPart(key, kind);
    } else if (step === "end") {
      if (open !== undefined) this.endPart(key);
    } else if (step === "delta") {
      if (open === undefined) throw wrong(`there is a ${c.type} for "${c.id}", which is not open`);
      const type = kind === "text" ? "TEXT_MESSAGE_CONTENT" : "REASONING_MESSAGE_CONTENT";
      if (c.delta) this.put(type, { messageId: open, delta: c.delta.toWellFormed() });
    }
  }

  private startPart(key: string, kind: "text" | "reasoning"): void {
    const messageId = this.newId();
    this.parts.set(key, messageId);
    if (kind === "text") {
      this.put("TEXT_MESSAGE_START", { messageId, role: "assistant" });
    } else {
      this.put("REASONING_START", { messageId });
      this.put("REASONING_MESSAGE_START", { messageId, role: "reasoning" });
    }
  }

  private endPart(key: string): void {
    const messageId = this.parts.get(key);
    this.parts.delete(key);
    if (key.startsWith("text")) {
      this.put("TEXT_MESSAGE_END", { messageId });
    } else {
      this.put("REASONING_MESSAGE_END", { messageId });
      this.put("REASONING_END", { messageId });
    }
  }

  private tool(c: Chunk): void {
    const id = c.toolCallId;
    if (c.type === "tool-approval-response") return;
    if (!id) throw wrong(`a ${c.type} has no toolCallId`);
    if (c.type.startsWith("tool-input-") && c.type !== "tool-input-delta") this.input(id, c);
    else if (c.type === "tool-input-delta") this.argumentsDelta(id, c);
    else if (c.type === "tool-approval-request") {
      this.callOf(id, c);
      this.endCall(id, undefined);
      this.interrupts.push({ id: c.approvalId, reason: "tool_call", toolCallId: id });
    } else if (c.type === "tool-output-available" && !c.preliminary) this.answer(id, asText(c.output), "");
    else if (c.type === "tool-output-error") this.answer(id, text(c.errorText), text(c.errorText) || "the tool failed");
    else if (c.type === "tool-output-denied")
      this.answer(id, "", "the user denied the call", { metadata: { tapedeck: { denied: true } } });
  }

  private input(id: string, c: Chunk): void {
    this.beginCall(id, c);
    if (c.type === "tool-input-start") return;
    this.endCall(id, c.input);
    const failure = text(c.errorText);
    if (c.type === "tool-input-error") this.answer(id, failure, failure || "the input of the tool is wrong");
  }

  private argumentsDelta(id: string, c: Chunk): void {
    const call = this.callOf(id, c);
    if (call.whole || !c.inputTextDelta) return;
    call.begun = true;
    this.put("TOOL_CALL_ARGS", { toolCallId: id, delta: c.inputTextDelta.toWellFormed() });
  }

  private callOf(id: string, c: Chunk): Call {
    const call = this.calls.get(id);
    if (!call) throw wrong(`there is a ${c.type} for the call "${id}", which has not begun`);
    return call;
  }

  private beginCall(id: string, c: Chunk): void {
    if (this.calls.has(id)) return;
    if (typeof c.toolName !== "string" || c.toolName === "") throw wrong(`a ${c.type} has no toolName`);
    this.calls.set(id, { begun: false, whole: false, answered: false });
    this.put("TOOL_CALL_START", { toolCallId: id, toolCallName: c.toolName });
  }

  /** Ends the arguments of a call. `input` is the whole of them. */
  private endCall(id: string, input: unknown): void {
    const call = this.calls.get(id)!;
    if (call.whole) return;
    call.whole = true;
    if (!call.begun && input !== undefined) this.put("TOOL_CALL_ARGS", { toolCallId: id, delta: asText(input) });
    this.put("TOOL_CALL_END", { toolCallId: id });
  }

  private answer(id: string, content: string, failure: string, more: object = {}): void {
    let call = this.calls.get(id);
    if (!call) {
      call = { begun: true, whole: true, answered: false }; // it answers a call of an earlier run
      this.calls.set(id, call);
    }
    this.endCall(id, undefined);
    if (call.answered) return;
    call.answered = true;
    const error = failure ? { error: failure.toWellFormed() } : {};
    this.put("TOOL_CALL_RESULT", { messageId: this.newId(), toolCallId: id, content, role: "tool", ...error, ...more });
  }

  /** A part by itself. Transient data is for those who watch, so no view of the log has it. */
  private whole(c: Chunk): void {
    if (c.transient === true) {
      this.put("CUSTOM", { name: c.type.slice("data-".length), value: c.data ?? null });
      return;
    }
    const named = `${this.run}:${c.type}:${c.id}`; // the same id replaces the data
    const messageId = c.id === undefined || c.id === "" || named.length > 500 ? this.newId() : named;
    this.put("ACTIVITY_SNAPSHOT", { messageId, activityType: c.type, content: c });
  }

  /** What a user has said to the running agent. */
  private steer(c: Chunk): void {
    const parts = Array.isArray(c.parts) ? (c.parts as { type?: string; text?: string }[]) : [];
    const content = parts.map((p) => (p.type === "text" ? text(p.text) : "")).join("");
    const message = { id: typeof c.id === "string" && c.id ? c.id : this.newId(), role: "user", content };
    this.put("message.added", { message }, "user");
  }

  private end(c: Chunk): void {
    this.close();
    if (c.type === "error") {
      this.putError(text(c.errorText));
      return;
    }
    const run = { threadId: "main", runId: this.run };
    if (c.type === "abort") this.put("RUN_FINISHED", { ...run, outcome: { type: "cancelled" } });
    else if (this.interrupts.length === 0) this.put("RUN_FINISHED", run);
    else this.put("RUN_FINISHED", { ...run, outcome: { type: "interrupt", interrupts: this.interrupts } });
    this.ended = true;
  }

  /** Ends what is open, in no order that matters: nothing is inside of anything. */
  private close(): void {
    for (const key of [...this.parts.keys()].sort()) this.endPart(key);
    for (const id of [...this.calls.keys()].sort()) this.endCall(id, undefined);
  }
}

/** The chunks that are parts by themselves, besides those of an application. */
const wholes = new Set(["source-url", "source-document", "file", "reasoning-file"]);

/** A mistake in the chunks. Its text has nothing of the agent but ids and names. */
export class Wrong extends TapedeckError {
  constructor(message: string) {
    super("invalid", message);
  }
}

function wrong(message: string): Wrong {
  return new Wrong(message);
}

function text(value: unknown): string {
  return typeof value === "string" ? value.toWellFormed() : "";
}

/** A string as it is, any other value as JSON. */
function asText(value: unknown): string {
  return typeof value === "string" ? value.toWellFormed() : (JSON.stringify(value) ?? "null");
}
