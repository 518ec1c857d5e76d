import { isObject, Reader } from "./fold/read.ts";
import type { JsonObject } from "./fold/types.ts";

/** A user who has the session open, as this page shows them. */
export interface Person {
  user: string;
  name: string;
  at?: number; // their playhead; absent for live
  state?: "typing" | "away";
  since?: number; // when they joined
}

/** The cursor that this page sends for its user. */
export interface Cursor {
  name?: string;
  at?: number;
  state?: "typing" | "away";
}

/** An event of the channel presence. It has no offset if it is not in the log. */
export interface PresenceEvent {
  type: string;
  timestamp: string;
  data?: JsonObject;
}

/** The roster of a session: the fold of its presence events. */
export class People {
  private readonly all = new Map<string, Person>();

  /** In the order in which they joined. */
  list(): Person[] {
    return [...this.all.values()];
  }

  apply(e: PresenceEvent): void {
    const r = new Reader(e.data);
    const user = r.str("user");
    if (user === "") return;
    if (e.type === "presence.left") {
      this.all.delete(user);
      return;
    }
    if (e.type !== "presence.joined" && e.type !== "presence.moved") return;
    const before = this.all.get(user);
    const cursor = r.raw("cursor");
    const position = cursor === undefined ? before : readCursor(cursor);
    const since = Date.parse(r.str("joinedAt")) || before?.since || Date.parse(e.timestamp);
    this.all.set(user, { ...position, user, name: position?.name || user, ...(since ? { since } : {}) });
  }
}

/** The valid members of a cursor. Other clients may send cursors of any shape. */
function readCursor(raw: unknown): Cursor {
  if (!isObject(raw)) return {};
  const { name, at, state } = raw;
  return {
    ...(typeof name === "string" && name.trim() !== "" ? { name: name.trim().slice(0, 60) } : {}),
    ...(Number.isSafeInteger(at) && (at as number) >= 0 ? { at: at as number } : {}),
    ...(state === "typing" || state === "away" ? { state } : {}),
  };
}

/** The user id for a name; a name always gives the same id. */
export function userOf(name: string): string {
  const plain = name.normalize("NFKD").replace(/\p{M}/gu, "");
  const id = plain.trim().replace(/[^A-Za-z0-9_.:@-]+/g, "-");
  if (/[A-Za-z0-9_]/.test(id)) return id.replace(/^[^A-Za-z0-9_]+|-+$/g, "").slice(0, 60);
  const points = [...name.trim()].map((c) => (c.codePointAt(0) ?? 0).toString(16));
  return `u_${points.join("_").slice(0, 60)}`;
}

/** Up to two letters for a small badge. */
export function initials(name: string): string {
  const words = name.split(/[\s._:@-]+/).filter(Boolean);
  const letters = words.length > 1 ? [words[0], words.at(-1)] : [words[0] ?? "?"];
  return letters
    .map((w) => [...(w ?? "")][0] ?? "")
    .join("")
    .toUpperCase();
}
