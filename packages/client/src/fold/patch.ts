import { depth, isObject, maxDepth } from "./read.ts";
import type { Json, JsonObject } from "./types.ts";

/**
 * The budget that all patches of a conversation share. The writers of the log are
 * not trusted, and a few bytes of patch can cost much: each "copy" of a document
 * into itself doubles it.
 */
export class PatchBudget {
  earned = 0;
  spent = 0;

  left(): number {
    return initialBudget + this.earned - this.spent;
  }

  /** Spends a cost. If the budget is too small, it spends the rest and fails with Unpatchable. */
  spend(cost: number): void {
    const left = this.left();
    this.spent += Math.min(cost, left);
    if (cost > left) throw new Unpatchable();
  }

  clone(): PatchBudget {
    const p = new PatchBudget();
    p.earned = this.earned;
    p.spent = this.spent;
    return p;
  }
}

const initialBudget = 4 << 20;
const budgetPerByte = 64;

/** A patch was not applied: it does not fit the document, or costs too much. */
export class Unpatchable extends Error {}

/** The approximate size of a value as JSON; the original bytes are not kept. */
export function bytes(v: Json | undefined): number {
  return v === undefined ? 0 : JSON.stringify(v).length;
}

/**
 * Applies a JSON Patch (RFC 6902) as a whole and returns the new document, or
 * fails with Unpatchable. The old document does not change; both share their
 * equal parts.
 */
export function patch(doc: Json, delta: Json | undefined, budget: PatchBudget): Json {
  if (delta !== null && !Array.isArray(delta)) throw new Unpatchable();
  const ops = (delta ?? []).map(operation);
  budget.earned += budgetPerByte * bytes(delta);
  for (const o of ops) doc = apply(doc, o, budget);
  return doc;
}

interface Operation {
  op: string;
  path: string | undefined;
  from: string | undefined;
  value: Json | undefined;
}

function operation(raw: Json): Operation {
  if (raw !== null && !isObject(raw)) throw new Unpatchable();
  const text = (name: string): string | undefined => {
    const v = raw?.[name] ?? undefined;
    if (v !== undefined && typeof v !== "string") throw new Unpatchable();
    return v;
  };
  return { op: text("op") ?? "", path: text("path"), from: text("from"), value: raw?.value };
}

function apply(doc: Json, o: Operation, budget: PatchBudget): Json {
  const path = pointer(o.path);
  switch (o.op) {
    case "test":
      if (!equal(find(doc, path), given(o))) throw new Unpatchable();
      return doc;
    case "add":
    case "replace":
      return put(doc, o.op, path, given(o), budget);
    case "remove":
      return record(doc, "remove", path, null, budget);
    case "copy": {
      const value = find(doc, pointer(o.from));
      budget.spend(size(value, budget.left()));
      return put(doc, "add", path, value, budget);
    }
    case "move":
      return move(doc, pointer(o.from), path, budget);
  }
  throw new Unpatchable();
}

function given(o: Operation): Json {
  if (o.value === undefined) throw new Unpatchable();
  return o.value;
}

function move(doc: Json, from: string[], to: string[], budget: PatchBudget): Json {
  if (from.length < to.length && from.every((t, i) => t === to[i])) throw new Unpatchable(); // cannot move a value into itself
  const value = find(doc, from);
  doc = record(doc, "remove", from, null, budget);
  if (to.length <= from.length) return record(doc, "add", to, value, budget); // the document gets no deeper
  budget.spend(size(value, budget.left()));
  return put(doc, "add", to, value, budget);
}

type Op = "add" | "replace" | "remove";

/** A change that may make the document deeper. */
function put(doc: Json, op: Op, path: string[], value: Json, budget: PatchBudget): Json {
  if (path.length + depth(value) > maxDepth) throw new Unpatchable();
  return record(doc, op, path, value, budget);
}

function record(doc: Json, op: Op, path: string[], value: Json, budget: PatchBudget): Json {
  budget.spend(shifted(doc, op, path));
  return change(doc, op, path, 0, value);
}

/** The cost of shifting the elements of an array. */
function shifted(doc: Json, op: Op, path: string[]): number {
  if (op === "replace" || path.length === 0 || path.at(-1) === "-") return 0;
  let node: Json | undefined = doc;
  for (let i = 0; i < path.length - 1; i++) node = child(node, path[i]!);
  return Array.isArray(node) ? Math.floor(node.length / 64) : 0;
}

function change(node: Json, op: Op, path: string[], at: number, value: Json): Json {
  if (at === path.length) return value; // removing the root leaves null
  const token = path[at]!;
  const last = at === path.length - 1;
  if (Array.isArray(node)) return last ? element(node, op, token, value) : inner(node, op, path, at, value);
  if (!isObject(node)) throw new Unpatchable();
  if (!last) return inner(node, op, path, at, value);
  if (!Object.hasOwn(node, token) && op !== "add") throw new Unpatchable();
  const { [token]: _, ...rest } = node;
  return op === "remove" ? rest : { ...node, [token]: value };
}

function inner(node: Json[] | JsonObject, op: Op, path: string[], at: number, value: Json): Json {
  const token = path[at]!;
  const old = child(node, token);
  if (old === undefined) throw new Unpatchable();
  const now = change(old, op, path, at + 1, value);
  return Array.isArray(node) ? node.with(Number(token), now) : { ...node, [token]: now };
}

function element(node: Json[], op: Op, token: string, value: Json): Json {
  let last = node.length - 1;
  if (op === "add") {
    last++;
    if (token === "-") token = String(last);
  }
  const i = index(token, last);
  if (i < 0) throw new Unpatchable();
  if (op === "replace") return node.with(i, value);
  return op === "add" ? node.toSpliced(i, 0, value) : node.toSpliced(i, 1);
}

function child(node: Json | undefined, token: string): Json | undefined {
  if (Array.isArray(node)) return node[index(token, node.length - 1)];
  if (isObject(node) && Object.hasOwn(node, token)) return node[token];
  return undefined;
}

/** The array index that a token names, from 0 to last; -1 if it is not one. */
function index(token: string, last: number): number {
  const i = /^(?:0|[1-9]\d{0,14})$/.test(token) ? Number(token) : -1;
  return i <= last ? i : -1;
}

function find(node: Json, path: string[]): Json {
  for (const token of path) {
    const next = child(node, token);
    if (next === undefined) throw new Unpatchable();
    node = next;
  }
  return node;
}

/** Splits a JSON Pointer (RFC 6901) into its tokens. */
function pointer(p: string | undefined): string[] {
  if (p === undefined || (p !== "" && !p.startsWith("/"))) throw new Unpatchable();
  if (p === "") return [];
  return p
    .slice(1)
    .split("/")
    .map((t) => t.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** Estimates the bytes of a value. It stops counting soon after limit. */
function size(v: Json | undefined, limit: number): number {
  let n = 16;
  if (typeof v === "string") n += v.length;
  else if (typeof v === "number") n += String(v).length;
  else if (typeof v === "object" && v !== null) {
    for (const [key, one] of Object.entries(v)) {
      n += (Array.isArray(v) ? 0 : key.length) + size(one, limit - n);
      if (n > limit) break;
    }
  }
  return n;
}

export function equal(a: Json | undefined, b: Json | undefined): boolean {
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((v, i) => equal(v, b[i]));
  if (isObject(a)) {
    if (!isObject(b)) return false;
    const names = Object.keys(a);
    return names.length === Object.keys(b).length && names.every((n) => Object.hasOwn(b, n) && equal(a[n], b[n]));
  }
  return a === b;
}
