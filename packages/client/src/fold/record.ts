import { depth, maxDepth } from "./read.ts";
import type { Event, Item, Json, Message, Retry, Run, Status, ToolCall, ToolResult } from "./types.ts";

// The changeable messages, tool calls and runs of a fold. `value` builds the object
// that a view shows, and returns the same object until the record changes. So
// React renders only what has changed.

/** The common members of an item that starts with an event. */
export function begun(thread: string, e: Event, status: Status): Item {
  const item: Item = { offset: e.offset, thread, status, started_at: e.timestamp };
  if (e.invocation) item.invocation = e.invocation;
  if (e.instance) item.instance = e.instance;
  if (e.turn) item.turn = e.turn;
  if (e.actor) item.actor = e.actor;
  return item;
}

/** A copy of an item that ends with an event. */
export function ended<T extends { started_at: string; status: string }>(item: T, e: Event, status: T["status"]): T {
  const took = Date.parse(e.timestamp) - Date.parse(item.started_at);
  return { ...item, status, end_offset: e.offset, ended_at: e.timestamp, duration_ms: Math.max(0, took) || 0 };
}

function reopened(item: Item, status: Status): Item {
  const { end_offset: _, ended_at: __, duration_ms: ___, ...rest } = item;
  return { ...rest, status };
}

abstract class Rec<T extends Item> {
  item: Item;
  private cached: T | undefined;

  constructor(item: Item) {
    this.item = item;
  }

  get invocation(): string {
    return this.item.invocation ?? "";
  }

  touch(): void {
    this.cached = undefined;
  }

  end(e: Event, status: Status): void {
    this.item = ended(this.item, e, status);
    this.touch();
  }

  reopen(status: Status): void {
    this.item = reopened(this.item, status);
    this.touch();
  }

  took(ms: number): void {
    this.item = { ...this.item, duration_ms: ms };
    this.touch();
  }

  status(status: Status): void {
    this.item = { ...this.item, status };
    this.touch();
  }

  value(): T {
    this.cached ??= this.make();
    return this.cached;
  }

  protected abstract make(): T;
}

export class MessageRec extends Rec<Message> {
  id: string;
  role = "assistant";
  name = "";
  text = "";
  parts: Json | undefined;
  toolCall = "";
  activity = "";
  doc: Json | undefined; // the content of an activity
  metadata: Json | undefined;
  calls: CallRec[] = []; // the tool calls of this message
  gone = false; // dropped by a MESSAGES_SNAPSHOT
  settled = false; // still here only because some of its calls have not settled

  constructor(item: Item, id: string) {
    super(item);
    this.id = id;
  }

  /** A copy; its calls are still the records of the original. */
  copy(): MessageRec {
    return Object.assign(new MessageRec(this.item, this.id), this);
  }

  protected make(): Message {
    const m: Message = { ...this.item, id: this.id, role: this.role, text: this.text };
    if (this.name) m.name = this.name;
    if (this.parts !== undefined) m.parts = this.parts;
    if (this.toolCall) m.tool_call_id = this.toolCall;
    if (this.activity) m.activity_type = this.activity;
    if (this.doc !== undefined) m.content = this.doc;
    if (this.metadata !== undefined) m.metadata = this.metadata;
    return m;
  }
}

export class CallRec extends Rec<ToolCall> {
  id: string;
  name = "";
  messageId = "";
  args = "";
  threads: string[] = [];
  complete = false; // the arguments are complete
  result: ToolResult | undefined;
  maker: MessageRec | undefined; // the message that contains the call, if known
  gone = false; // dropped with its message

  constructor(item: Item, id: string) {
    super(item);
    this.id = id;
  }

  copy(): CallRec {
    return Object.assign(new CallRec(this.item, this.id), this);
  }

  /** The arguments as JSON; undefined if they are not complete or not JSON. */
  input(): Json | undefined {
    if (!this.complete) return undefined;
    try {
      const v: Json = JSON.parse(this.args);
      return depth(v) <= maxDepth ? v : undefined;
    } catch {
      return undefined;
    }
  }

  /** Sets the message that contains the call, if known. */
  madeBy(m: MessageRec | undefined): void {
    if (!m || this.maker === m) return;
    this.maker = m;
    this.messageId = m.id;
    m.calls.push(this);
    this.touch();
  }

  protected make(): ToolCall {
    const k: ToolCall = { ...this.item, id: this.id, name: this.name, arguments: this.args };
    if (this.messageId) k.message_id = this.messageId;
    const input = this.input();
    if (input !== undefined) k.input = input;
    if (this.result) k.result = this.result;
    if (this.threads.length > 0) k.threads = this.threads;
    return k;
  }
}

export class RunRec extends Rec<Run> {
  agent = "";
  parent = "";
  context = "";
  resumable: boolean | undefined;
  error: { message: string; code?: string } | undefined;
  result: Json | undefined;
  interrupts: Json | undefined;
  usage: Json | undefined;
  retries: readonly Retry[] = [];

  copy(): RunRec {
    return Object.assign(new RunRec(this.item), this);
  }

  protected make(): Run {
    const r: Run = { ...this.item };
    if (this.agent) r.agent = this.agent;
    if (this.parent) r.parent = this.parent;
    if (this.context) r.context = this.context;
    if (this.resumable !== undefined) r.resumable = this.resumable;
    if (this.error) r.error = this.error;
    if (this.result !== undefined) r.result = this.result;
    if (this.interrupts !== undefined) r.interrupts = this.interrupts;
    if (this.usage !== undefined) r.usage = this.usage;
    if (this.retries.length > 0) r.retries = [...this.retries];
    return r;
  }
}
