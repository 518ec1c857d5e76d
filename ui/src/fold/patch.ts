import { depth, isObject, maxDepth } from "./read";
import type { Json, JsonObject } from "./types";

/**
 * What patches may yet cost, all those of a conversation together. Who writes the
 * log is not trusted, and a few bytes of patch can ask for much: each "copy" of a
 * document into itself doubles it.
 */
export class Purse {
  earned = 0;
  spent = 0;

  left(): number {
    return firstMeans + this.earned - this.spent;
  }

  /** Takes a cost, or all that is left and fails. */
  spend(cost: number): void {
    const left = this.left();
    this.spent += Math.min(cost, left);
    if (cost > left) throw new Unpatchable();
  }

  clone(): Purse {
    const p = new Purse();
    p.earned = this.earned;
    p.spent = this.spent;
    return p;
  }
}

const firstMeans = 4 << 20;
const perByte = 64;

/** Why a patch was not applied: it does not fit, or costs too much. */
export class Unpatchable extends Error {}

/** How many bytes a value has as JSON, about: its own form is not known any more. */
export function bytes(v: Json | undefined): number {
  return v === undefined ? 0 : JSON.stringify(v).length;
}

/**
 * Applies a JSON Patch (RFC 6902) as a whole, and returns what the document is
 * then; it fails with Unpatchable. Documents are not changed, and share what is
 * the same in both.
 */
export function patch(doc: Json, delta: Json | undefined, purse: Purse): Json {
  if (delta !== null && !Array.isArray(delta)) throw new Unpatchable();
  const ops = (delta ?? []).map(operation);
  purse.earned += perByte * bytes(delta);
  for (const o of ops) doc = apply(doc, o, purse);
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

function apply(doc: Json, o: Operation, purse: Purse): Json {
  const path = pointer(o.path);
  switch (o.op) {
    case "test":
      if (!equal(find(doc, path), given(o))) throw new Unpatchable();
      return doc;
    case "add":
    case "replace":
      return put(doc, o.op, path, given(o), purse);
    case "remove":
      return record(doc, "remove", path, null, purse);
    case "copy": {
      const value = find(doc, pointer(o.from));
      purse.spend(size(value, purse.left()));
      return put(doc, "add", path, value, purse);
    }
    case "move":
      return move(doc, pointer(o.from), path, purse);
  }
  throw new Unpatchable();
}

function given(o: Operation): Json {
  if (o.value === undefined) throw new Unpatchable();
  return o.value;
}

function move(doc: Json, from: string[], to: string[], purse: Purse): Json {
  if (from.length < to.length && from.every((t, i) => t === to[i])) throw new Unpatchable(); // not into itself
  const value = find(doc, from);
  doc = record(doc, "remove", from, null, purse);
  if (to.length <= from.length) return record(doc, "add", to, value, purse); // not deeper than it was
  purse.spend(size(value, purse.left()));
  return put(doc, "add", to, value, purse);
}

type Op = "add" | "replace" | "remove";

/** A change that may make the document deeper. */
function put(doc: Json, op: Op, path: string[], value: Json, purse: Purse): Json {
  if (path.length + depth(value) > maxDepth) throw new Unpatchable();
  return record(doc, op, path, value, purse);
}

function record(doc: Json, op: Op, path: string[], value: Json, purse: Purse): Json {
  purse.spend(shifted(doc, op, path));
  return change(doc, op, path, 0, value);
}

/** What a change costs because elements of an array have to move. */
function shifted(doc: Json, op: Op, path: string[]): number {
  if (op === "replace" || path.length === 0 || path.at(-1) === "-") return 0;
  let node: Json | undefined = doc;
  for (let i = 0; i < path.length - 1; i++) node = child(node, path[i]!);
  return Array.isArray(node) ? Math.floor(node.length / 64) : 0;
}

function change(node: Json, op: Op, path: string[], at: number, value: Json): Json {
  if (at === path.length) return value; // to remove all leaves null
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

/** The index of an array's element, from 0 to last; -1 if the token is none. */
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

/** Divides a JSON Pointer (RFC 6901). */
function pointer(p: string | undefined): string[] {
  if (p === undefined || (p !== "" && !p.startsWith("/"))) throw new Unpatchable();
  if (p === "") return [];
  return p
    .slice(1)
    .split("/")
    .map((t) => t.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** Estimates the bytes of a value, and stops counting soon after limit. */
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
