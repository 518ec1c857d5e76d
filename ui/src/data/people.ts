import { isObject, Reader } from "../fold/read";
import type { JsonObject } from "../fold/types";

/** Somebody who is in a session, in the words of this page. */
export interface Person {
  user: string;
  name: string;
  at?: number; // where they look; absent for live
  state?: "typing" | "away";
  since?: number; // when they came
}

/** What this page tells of where somebody is. */
export interface Cursor {
  name?: string;
  at?: number;
  state?: "typing" | "away";
}

/** An event of the channel presence; whoever is not in the log has no offset. */
export interface PresenceEvent {
  type: string;
  timestamp: string;
  data?: JsonObject;
}

/** Who is in a session: the fold of the events of presence. */
export class People {
  private readonly all = new Map<string, Person>();

  /** In the order in which they came. */
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
    const where = cursor === undefined ? before : whereOf(cursor);
    const since = Date.parse(r.str("joinedAt")) || before?.since || Date.parse(e.timestamp);
    this.all.set(user, { ...where, user, name: where?.name || user, ...(since ? { since } : {}) });
  }
}

/** What a cursor says, if it is of a page like this one: others may say anything. */
function whereOf(raw: unknown): Cursor {
  if (!isObject(raw)) return {};
  const { name, at, state } = raw;
  return {
    ...(typeof name === "string" && name.trim() !== "" ? { name: name.trim().slice(0, 60) } : {}),
    ...(Number.isSafeInteger(at) && (at as number) >= 0 ? { at: at as number } : {}),
    ...(state === "typing" || state === "away" ? { state } : {}),
  };
}

/** The id of whoever calls themselves by a name; one name has one id. */
export function userOf(name: string): string {
  const plain = name.normalize("NFKD").replace(/\p{M}/gu, "");
  const id = plain.trim().replace(/[^A-Za-z0-9_.:@-]+/g, "-");
  if (/[A-Za-z0-9_]/.test(id)) return id.replace(/^[^A-Za-z0-9_]+|-+$/g, "").slice(0, 60);
  const points = [...name.trim()].map((c) => (c.codePointAt(0) ?? 0).toString(16));
  return `u_${points.join("_").slice(0, 60)}`;
}

/** Two letters for a small place. */
export function initials(name: string): string {
  const words = name.split(/[\s._:@-]+/).filter(Boolean);
  const letters = words.length > 1 ? [words[0], words.at(-1)] : [words[0] ?? "?"];
  return letters
    .map((w) => [...(w ?? "")][0] ?? "")
    .join("")
    .toUpperCase();
}
