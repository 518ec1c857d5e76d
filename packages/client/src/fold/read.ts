import type { Event, Json, JsonObject } from "./types.ts";

// Deeper values are not folded: a view with them could not be encoded.
export const maxDepth = 1000;

/** How deep arrays and objects nest, at most limit + 1. */
export function depth(v: Json | undefined, limit = maxDepth): number {
  if (v === null || typeof v !== "object") return 0;
  if (limit <= 0) return 1;
  let deepest = 0;
  for (const child of Array.isArray(v) ? v : Object.values(v)) {
    deepest = Math.max(deepest, depth(child, limit - 1));
    if (deepest >= limit) break;
  }
  return deepest + 1;
}

const nothing: JsonObject = {};

export function isObject(v: unknown): v is JsonObject {
  return typeof v === "object" && v !== null && !Array.isArray(v);
}

/**
 * Reads the members of an object. Half of a surrogate pair in a text becomes
 * U+FFFD, as in the server. An absent or null member gives the zero value. A member
 * of the wrong type gives the zero value, too, and sets ok to false.
 */
export class Reader {
  ok = true;
  private readonly data: JsonObject;

  constructor(data: Json | undefined) {
    this.data = isObject(data) ? data : nothing;
    if (data !== undefined && data !== null && this.data === nothing) this.ok = false;
  }

  raw(name: string): Json | undefined {
    return Object.hasOwn(this.data, name) ? this.data[name] : undefined;
  }

  str(name: string): string {
    const v = this.raw(name);
    if (typeof v === "string") return v.toWellFormed();
    return this.missing(v, "");
  }

  bool(name: string): boolean | undefined {
    const v = this.raw(name);
    if (typeof v === "boolean") return v;
    return this.missing(v, undefined);
  }

  list(name: string): Json[] | undefined {
    const v = this.raw(name);
    if (Array.isArray(v)) return v;
    return this.missing(v, undefined);
  }

  /** The strings of an array; none if it is absent. */
  strings(name: string): string[] {
    const list = this.list(name) ?? [];
    const out = list.filter((v) => typeof v === "string");
    if (out.length < list.length) this.ok = false;
    return out.map((v) => v.toWellFormed());
  }

  /** An integer, undefined if it is absent. */
  optionalInt(name: string): number | undefined {
    const v = this.raw(name);
    if (Number.isSafeInteger(v)) return v as number;
    return this.missing(v, undefined);
  }

  int(name: string): number {
    return this.optionalInt(name) ?? 0;
  }

  object(name: string): JsonObject | undefined {
    const v = this.raw(name);
    return isObject(v) ? v : this.missing(v, undefined);
  }

  /** A reader for a member that is an object. Check its ok, too. */
  sub(name: string): Reader {
    const v = this.raw(name);
    if (isObject(v)) return new Reader(v);
    this.missing(v, undefined);
    return new Reader(undefined);
  }

  private missing<T>(v: Json | undefined, zero: T): T {
    if (v !== undefined && v !== null) this.ok = false;
    return zero;
  }
}

/** Reads Tapedeck's part of metadata. Its ok means nothing: members of another shape count as absent. */
export function readMeta(metadata: Json | undefined): Reader {
  return new Reader(metadata).sub("tapedeck");
}

/** Reads the data of an event. */
export function read(e: Event): Reader {
  if (depth(e.data) <= maxDepth) return new Reader(e.data);
  const r = new Reader(undefined);
  r.ok = false;
  return r;
}

/** Returns the text of a message's content and, if the content is not a string, its parts. */
export function content(raw: Json | undefined): { text: string; parts?: Json } {
  if (raw === undefined || raw === null) return { text: "" };
  if (typeof raw === "string") return { text: raw.toWellFormed() };
  let text = "";
  for (const part of Array.isArray(raw) ? raw : []) {
    const r = new Reader(part);
    text += r.str("text");
    if (!r.ok) return { text: "", parts: raw };
  }
  return { text, parts: raw };
}

/** Reads a delta event: an id and the text to append. This fast path serves most events of a log. */
export function delta(e: Event, name: string): { id: string; text: string } | undefined {
  const id = e.data?.[name];
  const text = e.data?.delta;
  if (typeof id !== "string" || id === "") return undefined;
  if (typeof text === "string") return { id: id.toWellFormed(), text: text.toWellFormed() };
  return text === null ? { id: id.toWellFormed(), text: "" } : undefined;
}
