import { Announcer, type Cursor, People, type Person, userOf } from "@tapedeck/client";
import type { Deck, DeckState } from "@tapedeck/client/player";
import { useEffect, useMemo, useRef, useState } from "react";
import { api } from "@/client";
import { useChannel } from "./channel";
import { remembered } from "./remembered";

const key = "tapedeck.name";

export interface Presence {
  people: Person[]; // the users in the session now
  me?: string; // the user that this page announces
  name: string;
  setName: (name: string) => void; // "" stops sharing
  error: unknown; // why the presence could not be sent
}

/** The users in the session now. Shares the presence of this user if they have entered a name. */
export function usePresence(deck: Deck, { live, at }: DeckState): Presence {
  const people = useLivePeople(deck);
  const [name, set] = useState(() => remembered.get(key) ?? "");
  const [error, onError] = useState<unknown>();
  const state = useUserState();
  const cursor: Cursor = { name, ...(live ? {} : { at }), ...(state ? { state } : {}) };
  const latest = useRef(cursor);
  latest.current = cursor;
  const announcer = useRef<Announcer>(undefined);
  useEffect(() => {
    if (name === "") return;
    const user = userOf(name);
    const a = new Announcer((action, c) => api.presence(deck.id, { action, user, cursor: c }), latest.current, onError);
    announcer.current = a;
    a.start();
    const leave = () => a.stop();
    const back = (e: PageTransitionEvent) => e.persisted && a.start();
    const unsubscribe = deck.onPresence((e) => e || a.resend()); // a new connection
    addEventListener("pagehide", leave);
    addEventListener("pageshow", back);
    return () => {
      unsubscribe();
      removeEventListener("pagehide", leave);
      removeEventListener("pageshow", back);
      announcer.current = undefined;
      a.stop();
    };
  }, [deck, name]);
  useEffect(() => announcer.current?.move(latest.current));

  return useMemo(() => {
    const setName = (to: string) => {
      if (to === "") remembered.remove(key);
      else remembered.set(key, to);
      onError(undefined);
      set(to);
    };
    return { people, name, setName, error, ...(name ? { me: userOf(name) } : {}) };
  }, [people, name, error]);
}

/** The users in the session now, from the stream. */
function useLivePeople(deck: Deck): Person[] {
  const [list, set] = useState<Person[]>([]);
  useEffect(() => {
    let people = new People();
    return deck.onPresence((e) => {
      if (e) people.apply(e);
      else people = new People(); // a new connection resends the roster
      set(people.list());
    });
  }, [deck]);
  return list;
}

/** Whether the user is typing, or has switched to another tab or window. */
function useUserState(): Cursor["state"] {
  const [typing, setTyping] = useState(false);
  const [away, setAway] = useState(document.hidden);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const onInput = (e: Event) => {
      if (!(e.target instanceof HTMLElement) || e.target.id !== "composer") return;
      setTyping(true);
      clearTimeout(timer);
      timer = setTimeout(() => setTyping(false), 4000);
    };
    const onHidden = () => setAway(document.hidden);
    document.addEventListener("input", onInput);
    document.addEventListener("visibilitychange", onHidden);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("input", onInput);
      document.removeEventListener("visibilitychange", onHidden);
    };
  }, []);
  return away ? "away" : typing ? "typing" : undefined;
}

/** The users in the session at the playhead, if the log stores presence. */
export function usePeopleAt(deck: Deck, at: number) {
  const { log, ready, error, retry } = useChannel(deck, "presence", at, { maxBytes: 1_000_000, lookBack: 100_000 });
  const people = useMemo(() => {
    if (!ready) return undefined;
    const folded = new People();
    for (const e of log.events) if (e.offset < at) folded.apply(e);
    return folded.list();
  }, [log, ready, at]);
  return { people, error: ready ? undefined : error, retry };
}
