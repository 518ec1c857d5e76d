import { initials, type Person, userOf } from "@tapedeck/client";
import type { Deck, DeckState } from "@tapedeck/client/player";
import { type FormEvent, useState } from "react";
import { type Presence, usePeopleAt } from "@/hooks/people";
import { useNow } from "@/hooks/tick";
import { duration, plural } from "../format";
import { Button, ErrorBox, Loading } from "../ui";

interface Props {
  deck: Deck;
  state: DeckState;
  presence: Presence;
}

/** The users in the session now; in playback, at the playhead. */
export function PeoplePanel({ deck, state, presence }: Props) {
  return (
    <div className="flex flex-col gap-4">
      {state.live ? (
        <List people={presence.people} me={presence.me} deck={deck}>
          Nobody shares their presence.
        </List>
      ) : (
        <PeopleThen deck={deck} at={state.at} />
      )}
      <PresenceForm {...presence} />
    </div>
  );
}

function PeopleThen({ deck, at }: { deck: Deck; at: number }) {
  const { people, error, retry } = usePeopleAt(deck, at);
  if (error !== undefined) return <ErrorBox error={error} onRetry={retry} />;
  if (!people) return <Loading what="the people" />;
  return (
    <List people={people}>
      The log has no people at this moment. It stores presence only if the session has the label{" "}
      <code className="font-mono text-xs">presence</code> with the value{" "}
      <code className="font-mono text-xs">stored</code>.
    </List>
  );
}

interface ListProps {
  people: Person[];
  me?: string;
  children: React.ReactNode;
  deck?: Deck; // to go to a user's position; absent for the past
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
              {positionText(p)}
              {deck && p.since !== undefined ? ` · ${presentForText(now - p.since)}` : ""}
            </span>
          </span>
          {p.user !== me && deck && (
            <Button
              look="ghost"
              aria-label={`Go to the position of ${p.name}`}
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

function presentForText(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 1) return "just joined";
  return `here for ${minutes < 60 ? plural(minutes, "minute") : duration(ms)}`;
}

function positionText(p: Person): string {
  if (p.state === "typing") return "typing…";
  if (p.state === "away") return "away";
  return p.at === undefined ? "live" : `at event ${p.at.toLocaleString("en")}`;
}

const looks = [
  "bg-run-soft text-run",
  "bg-ok-soft text-ok",
  "bg-warn-soft text-warn",
  "bg-bad-soft text-bad",
  "bg-accent-soft text-accent",
];

/** A user has the same colour on every page. */
function colourOf(user: string): string {
  let n = 0;
  for (const c of user) n = (n * 31 + (c.codePointAt(0) ?? 0)) % 997;
  return looks[n % looks.length] as string;
}

function Avatar({ person }: { person: Person }) {
  return (
    <span
      aria-hidden="true"
      className={`relative inline-flex size-7 shrink-0 items-center justify-center rounded-full text-[11px] font-semibold ring-2 ring-panel ${colourOf(person.user)} ${person.state === "away" ? "opacity-60" : ""}`}
    >
      {initials(person.name)}
      {person.state === "typing" && (
        <span className="absolute -right-0.5 -bottom-0.5 z-10 size-2.5 animate-pulse rounded-full bg-accent ring-2 ring-panel" />
      )}
    </span>
  );
}

/** Small avatars of the other users. */
export function Avatars({ presence, onOpen }: { presence: Presence; onOpen: () => void }) {
  const others = presence.people.filter((p) => p.user !== presence.me);
  if (others.length === 0) return null;
  const names = others.slice(0, 10).map((p) => `${p.name}${p.state === "typing" ? " (typing)" : ""}`);
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

/** Presence is not shared before the user enters a name. */
function PresenceForm({ name, setName, error }: Presence) {
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
          className="h-8 min-w-0 flex-1 rounded-md border border-field bg-bg px-2"
        />
        <Button type="submit" disabled={text.trim() === "" || text.trim() === name}>
          Share my presence
        </Button>
      </div>
      <p className="text-xs text-muted">
        {name ? (
          <>
            Other people in a session that you open see you as {name}
            {userOf(name) === name ? "" : ` (${userOf(name)})`}, and your position.{" "}
            <button
              type="button"
              className="text-accent hover:underline"
              onClick={() => {
                setText("");
                setName("");
              }}
            >
              Stop sharing
            </button>
          </>
        ) : (
          "Others see you only if you enter a name. This browser stores the name."
        )}
      </p>
      {error !== undefined && name && <ErrorBox error={error} />}
    </form>
  );
}
