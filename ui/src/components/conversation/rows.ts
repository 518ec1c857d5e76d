import type { JsonObject, Marker, Message, Permission, Retry, Run, Snapshot, ToolCall } from "@tapedeck/client";
import { editsOf } from "./edit";

/** One row of a conversation. Its key identifies the item that it shows. */
export type Row =
  | { kind: "message"; key: string; offset: number; message: Message }
  | { kind: "tool"; key: string; offset: number; call: ToolCall }
  | { kind: "end"; key: string; offset: number; run: Run }
  | { kind: "retry"; key: string; offset: number; retry: Retry }
  | { kind: "ask"; key: string; offset: number; permission: Permission }
  | { kind: "jump"; key: string; offset: number; marker: Marker }
  | { kind: "gap"; key: string; offset: number; ms: number };

/** A longer pause between two rows gets a row of its own. */
const longPause = 5 * 60_000;

// The fold makes a new object for an item when it changes, so rows are cached by item.
const rowOf = {
  tool: new WeakMap<object, Row>(),
  message: new WeakMap<object, Row>(),
  end: new WeakMap<object, Row>(),
  retry: new WeakMap<object, Row>(),
};

function cachedRow<T extends object>(rows: WeakMap<object, Row>, item: T, make: (item: T) => Row): Row {
  let row = rows.get(item);
  if (!row) {
    row = make(item);
    rows.set(item, row);
  }
  return row;
}

const toolRow = (call: ToolCall): Row => ({ kind: "tool", key: `t${call.offset}`, offset: call.offset, call });
const messageRow = (message: Message): Row => ({
  kind: "message",
  key: `m${message.offset}`,
  offset: message.offset,
  message,
});
const endRow = (run: Run): Row => ({ kind: "end", key: `r${run.offset}`, offset: run.end_offset ?? run.offset, run });

const retryRow = (retry: Retry): Row => ({ kind: "retry", key: `a${retry.to}`, offset: retry.to, retry });

export type Parts = Pick<Snapshot, "messages" | "tool_calls" | "runs"> & { permissions?: Permission[] };

/** The rows of the active items, in the order of their start. */
export function rowsOf(parts: Parts, markers: Marker[]): Row[] {
  const rows: Row[] = [];
  const answered = new Set(parts.tool_calls.filter((call) => call.result).map((call) => call.id));
  // A message comes before the calls that its event has, too.
  for (const message of parts.messages) {
    if (isShown(message, answered)) rows.push(cachedRow(rowOf.message, message, messageRow));
  }
  for (const call of parts.tool_calls) rows.push(cachedRow(rowOf.tool, call, toolRow));
  for (const run of parts.runs) {
    if (run.end_offset !== undefined) rows.push(cachedRow(rowOf.end, run, endRow));
    for (const retry of run.retries ?? []) rows.push(cachedRow(rowOf.retry, retry, retryRow));
  }
  for (const permission of parts.permissions ?? []) {
    rows.push({ kind: "ask", key: `p${permission.offset}`, offset: permission.offset, permission });
  }
  const first = rows.reduce((n, r) => Math.min(n, r.offset), Number.POSITIVE_INFINITY);
  for (const marker of markers) {
    if (marker.offset > first || marker.offset === markers.at(-1)?.offset)
      rows.push({ kind: "jump", key: `j${marker.offset}`, offset: marker.offset, marker });
  }
  rows.sort((a, b) => a.offset - b.offset);
  return withPauses(rows);
}

/** The result of a tool is shown with its call. A message without content is not shown. */
function isShown(m: Message, answered: Set<string>): boolean {
  if (m.role === "tool") return !(m.tool_call_id && answered.has(m.tool_call_id));
  return m.text !== "" || m.parts !== undefined || m.content !== undefined || m.status === "running";
}

function withPauses(rows: Row[]): Row[] {
  const out: Row[] = [];
  let last = Number.NaN;
  for (const row of rows) {
    const { began, ended } = spanOf(row);
    if (began - last > longPause)
      out.push({ kind: "gap", key: `g${row.offset}`, offset: row.offset, ms: began - last });
    out.push(row);
    last = Math.max(ended, Number.isNaN(last) ? 0 : last) || last;
  }
  return out;
}

interface Span {
  began: number;
  ended: number;
}

// The list of rows is rebuilt with each frame, so parsed times are cached.
const spans = new WeakMap<Row, Span>();

function spanOf(row: Row): Span {
  let span = spans.get(row);
  if (!span) {
    span = { began: timeOf(row, "started_at"), ended: timeOf(row, "ended_at") };
    spans.set(row, span);
  }
  return span;
}

function timeOf(row: Row, which: "started_at" | "ended_at"): number {
  if (row.kind === "jump") return Date.parse(row.marker.at);
  const item = itemOf(row);
  if (!item) return Number.NaN;
  if (row.kind === "end") return Date.parse(item.ended_at ?? item.started_at);
  return Date.parse(item[which] ?? item.started_at);
}

export function itemOf(row: Row): Message | ToolCall | Run | Permission | undefined {
  if (row.kind === "message") return row.message;
  if (row.kind === "tool") return row.call;
  if (row.kind === "ask") return row.permission;
  return row.kind === "end" ? row.run : undefined;
}

/** Whether a row can be unfolded. */
export function isFolded(row: Row): boolean {
  return row.kind === "tool" || (row.kind === "message" && row.message.role === "reasoning");
}

/** Whether a row is unfolded until a user folds it: what failed, and what changed files. */
export function isNotable(row: Row): boolean {
  return row.kind === "tool" && (row.call.status === "failed" || editsOf(row.call).length > 0);
}

/** The invocation that a row belongs to. */
export function invocationOf(row: Row): string | undefined {
  return itemOf(row)?.invocation;
}

/** The message of a user that began an invocation; without one, the newest of a thread. */
export function taskOf(view: Pick<Parts, "messages"> | undefined, thread = "main", invocation?: string) {
  const asks = view?.messages.filter((m) => m.role === "user" && m.text !== "") ?? [];
  return invocation
    ? asks.find((m) => m.invocation === invocation)
    : asks.findLast((m) => m.thread === thread && m.invocation);
}

/** Whether a marker is a jump, which reverts events before it. */
export function isJump(m: Marker): boolean {
  return m.kind === "rewind" || m.kind === "clear" || m.kind === "overwrite";
}

/**
 * The jumps that undo another jump, by offset: "undo" makes reverted events active
 * again, and "redo", the undo of an undo, reverts them again.
 */
export function undoesOf(markers: Marker[]): Map<number, "undo" | "redo"> {
  const jumps = new Set<number>();
  const undoes = new Map<number, "undo" | "redo">();
  for (const { offset, to_offset: to } of markers.filter(isJump).sort((a, b) => a.offset - b.offset)) {
    if (to !== undefined && jumps.has(to)) undoes.set(offset, undoes.get(to) === "undo" ? "redo" : "undo");
    jumps.add(offset);
  }
  return undoes;
}

/** The jumps and the fork marker before an offset that no later jump has reverted. */
export function marksOf(markers: Marker[], at: number, thread?: string): Marker[] {
  const all = markers.filter(
    (m) =>
      (isJump(m) || m.kind === "fork") &&
      m.offset < at &&
      (!thread || !m.thread || m.thread === thread || m.thread === "main"),
  );
  const jumps = all.filter(isJump);
  const undoes = undoesOf(jumps);
  return all
    .filter((m) => !jumps.some((j) => j.offset > m.offset && (j.to_offset ?? 0) <= m.offset))
    .map((m) => (undoes.has(m.offset) ? { ...m, label: undoes.get(m.offset) } : m));
}

/** The actions of a row. */
export interface RowActions {
  onRewind?: (invocation?: string) => void;
  /** Why a rewind to the row is not possible now; undefined if it is. */
  rewindDisabledReason?: (invocation?: string) => string | undefined;
  onFork?: (at: number) => void;
  /** Edits a user's message and runs it again, in a fork. */
  onEdit?: (message: Message) => void;
  /** Runs the turn of a row again with another agent, in a fork. */
  onAgain?: (invocation?: string) => void;
  onLink?: (at: number) => void;
  onSeek: (at: number) => void;
  onPlay: (at: number) => void;
  /** Shows the events that a jump has reverted, with a way back. */
  onShowHidden?: (at: number) => void;
  onThread?: (thread: string) => void;
  /** Undoes the newest jump, which may be an undo. */
  onUndo: () => void;
  /** Compares the session before a jump with the session now. */
  onCompare?: (jump: Marker) => void;
  onAnswer?: (p: Permission, option?: string, input?: JsonObject) => Promise<unknown>;
}
