import { type FormEvent, useState } from "react";
import type { Deck, DeckState } from "@/data/deck";
import { initials, type Person, userOf } from "@/data/people";
import { type Presence, usePeopleThen } from "@/hooks/people";
import { useNow } from "@/hooks/tick";
import { duration, plural } from "../format";
import { Button, ErrorBox, Loading } from "../ui";

interface Props {
  deck: Deck;
  state: DeckState;
  presence: Presence;
}

/** Who is in the session; in playback, who was. */
export function PeoplePanel({ deck, state, presence }: Props) {
  return (
    <div className="flex flex-col gap-4">
      {state.live ? (
        <List people={presence.people} me={presence.me} deck={deck}>
          Nobody has said that they are here.
        </List>
      ) : (
        <Then deck={deck} at={state.at} />
      )}
      <Name {...presence} />
    </div>
  );
}

function Then({ deck, at }: { deck: Deck; at: number }) {
  const { people, error, retry } = usePeopleThen(deck, at);
  if (error !== undefined) return <ErrorBox error={error} onRetry={retry} />;
  if (!people) return <Loading what="who was here" />;
  return (
    <List people={people}>
      The log has nobody who was here at this moment. It keeps who comes and goes if the session has the label{" "}
      <code className="font-mono text-xs">presence</code> of the value <code className="font-mono text-xs">stored</code>
      .
    </List>
  );
}

interface ListProps {
  people: Person[];
  me?: string;
  children: React.ReactNode;
  deck?: Deck; // with which to go to where they are; absent for who was there then
}

function List({ people, me, children, deck }: ListProps) {
  const now = useNow(10_000);
  if (people.length === 0) return <p className="py-4 text-muted">{children}</p>;
  return (
    <ul aria-label="People" className="flex flex-col gap-2">
      {people.slice(0, 100).map((p) => (
        <li key={p.user} className="flex items-center gap-2">
          <Avatar person={p} />
          <span className="min-w-0 flex-1">
            <span className="block truncate font-medium">
              {p.name}
              {p.user === me && <span className="font-normal text-muted"> (you)</span>}
            </span>
            <span className="block truncate text-xs text-muted">
              {whereOf(p)}
              {deck && p.since !== undefined ? ` · ${hereFor(now - p.since)}` : ""}
            </span>
          </span>
          {p.user !== me && deck && (
            <Button
              look="ghost"
              aria-label={`Go to where ${p.name} is`}
              onClick={() => (p.at === undefined ? deck.goLive() : deck.seek(p.at))}
            >
              Go there
            </Button>
          )}
        </li>
      ))}
      {people.length > 100 && <li className="text-muted">and {people.length - 100} more</li>}
    </ul>
  );
}

function hereFor(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 1) return "has just come";
  return `here for ${minutes < 60 ? plural(minutes, "minute") : duration(ms)}`;
}

function whereOf(p: Person): string {
  if (p.state === "typing") return "is writing…";
  if (p.state === "away") return "looks at something else";
  return p.at === undefined ? "live" : `at event ${p.at.toLocaleString("en")}`;
}

const looks = [
  "bg-run-soft text-run",
  "bg-ok-soft text-ok",
  "bg-warn-soft text-warn",
  "bg-bad-soft text-bad",
  "bg-accent-soft text-accent",
];

/** One look for one user, on every page. */
function lookOf(user: string): string {
  let n = 0;
  for (const c of user) n = (n * 31 + (c.codePointAt(0) ?? 0)) % 997;
  return looks[n % looks.length] as string;
}

function Avatar({ person }: { person: Person }) {
  return (
    <span
      aria-hidden="true"
      className={`relative inline-flex size-7 shrink-0 items-center justify-center rounded-full text-[11px] font-semibold ring-2 ring-panel ${lookOf(person.user)} ${person.state === "away" ? "opacity-60" : ""}`}
    >
      {initials(person.name)}
      {person.state === "typing" && (
        <span className="absolute -right-0.5 -bottom-0.5 z-10 size-2.5 animate-pulse rounded-full bg-accent ring-2 ring-panel" />
      )}
    </span>
  );
}

/** Who else is here, in small. */
export function Avatars({ presence, onOpen }: { presence: Presence; onOpen: () => void }) {
  const others = presence.people.filter((p) => p.user !== presence.me);
  if (others.length === 0) return null;
  const names = others.slice(0, 10).map((p) => `${p.name}${p.state === "typing" ? " (is writing)" : ""}`);
  const label = `Also here: ${names.join(", ")}${others.length > 10 ? ` and ${others.length - 10} more` : ""}`;
  return (
    <button type="button" aria-label={label} title={label} onClick={onOpen} className="flex -space-x-0.5 rounded-full">
      {others.slice(0, 4).map((p) => (
        <Avatar key={p.user} person={p} />
      ))}
      {others.length > 4 && (
        <span className="inline-flex h-7 items-center rounded-full bg-raised px-2 text-xs text-text ring-2 ring-panel">
          +{others.length - 4}
        </span>
      )}
    </button>
  );
}

/** Nobody is announced before they have said how they are called. */
function Name({ name, setName, error }: Presence) {
  const [text, setText] = useState(name);
  const submit = (e: FormEvent) => {
    e.preventDefault();
    setName(text.trim());
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-2 border-t border-line pt-3">
      <label htmlFor="my-name" className="font-medium">
        Your name
      </label>
      <div className="flex gap-2">
        <input
          id="my-name"
          value={text}
          maxLength={60}
          autoComplete="nickname"
          onChange={(e) => setText(e.target.value)}
          className="h-8 min-w-0 flex-1 rounded-md border border-line bg-bg px-2"
        />
        <Button type="submit" disabled={text.trim() === "" || text.trim() === name}>
          Say that I am here
        </Button>
      </div>
      <p className="text-xs text-muted">
        {name ? (
          <>
            Whoever has a session open that you look at sees you as {name}
            {userOf(name) === name ? "" : ` (${userOf(name)})`}, and where you are.{" "}
            <button
              type="button"
              className="text-accent hover:underline"
              onClick={() => {
                setText("");
                setName("");
              }}
            >
              Be seen no more
            </button>
          </>
        ) : (
          "Nobody sees that you are here unless you give a name. It is kept in this browser."
        )}
      </p>
      {error !== undefined && name && <ErrorBox error={error} />}
    </form>
  );
}
