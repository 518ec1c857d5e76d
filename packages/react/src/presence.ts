import { Announcer, type Cursor, People, type Person, userOf } from "@tapedeck/client";
import { useEffect, useRef, useState } from "react";
import { useClient } from "./provider.ts";
import { useSharedPlayer } from "./shared.ts";

export interface PresenceOptions extends Cursor {
  /** The name under which others see this user. Without it, or with an empty one, nothing is sent. */
  name?: string;
}

export interface UsePresence {
  /** Who has the session open now, in the order in which they came. */
  people: Person[];
  /** The id of this user in `people`; undefined if nothing is sent. */
  me: string | undefined;
  /** Why the presence of this user could not be sent. */
  error: unknown;
}

/** Who has a session open now. With a name, others see this user, too. */
export function usePresence(id: string, cursor: PresenceOptions = {}): UsePresence {
  const client = useClient();
  const player = useSharedPlayer(client, id);
  const [people, setPeople] = useState<Person[]>([]);
  const [error, setError] = useState<unknown>();
  const name = cursor.name ?? "";
  const announcer = useRef<Announcer>(undefined);
  const latest = useRef<Cursor>(cursor);

  useEffect(() => {
    latest.current = cursor;
    announcer.current?.move(cursor);
  });
  useEffect(() => {
    let roster = new People();
    return player.onPresence((e) => {
      if (e) roster.apply(e);
      else roster = new People(); // a new connection resends the roster
      setPeople(roster.list());
    });
  }, [player]);
  useEffect(() => {
    if (name === "") return;
    const user = userOf(name);
    const send = (action: "join" | "move" | "leave", c: Cursor) => client.api.presence(id, { action, user, cursor: c });
    const a = new Announcer(send, latest.current, setError);
    announcer.current = a;
    a.start();
    const leave = () => a.stop();
    const unsubscribe = player.onPresence((e) => e || a.resend());
    const back = (e: PageTransitionEvent) => e.persisted && a.start();
    globalThis.addEventListener?.("pagehide", leave);
    globalThis.addEventListener?.("pageshow", back);
    return () => {
      unsubscribe();
      globalThis.removeEventListener?.("pagehide", leave);
      globalThis.removeEventListener?.("pageshow", back);
      announcer.current = undefined;
      a.stop();
    };
  }, [client, player, id, name]);
  return { people, me: name ? userOf(name) : undefined, error };
}
