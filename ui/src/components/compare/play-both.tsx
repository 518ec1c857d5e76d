import type { Diff } from "@tapedeck/client";
import { type Deck, type DeckState, eventsPerSecond, idleMs } from "@tapedeck/client/player";
import { useEffect, useMemo, useState } from "react";
import { useDeck } from "@/hooks/deck";
import { useKeys } from "@/hooks/keys";
import { MiniConversation } from "../conversation/mini-conversation";
import { clock, plural } from "../format";
import { Speed } from "../transport/speed";
import { Button, ErrorBox, field, Loading } from "../ui";
import { lengthOf, type Pace, skipIdle, stopsOf } from "./lockstep";

const maxSpeed = 16;
/** The display time of a turn. */
const turnMs = 1500;
/** The interval at which both sides are moved. */
const tickMs = 100;

/** Plays both sides from the point where they diverge, with one bar: turn by turn, or by the time since then. */
export function PlayBoth({ diff }: { diff: Diff }) {
  const a = useSide(diff, "a");
  const b = useSide(diff, "b");
  const [by, setBy] = useState<"turn" | "time">(diff.turns.length > 1 ? "turn" : "time"); // one turn has no steps to see
  const [at, setAt] = useState(0);
  const [playing, setPlaying] = useState(true); // who opens it wants to see it play
  const [speed, setSpeed] = useState(1);
  const paces = useMemo(() => [a.pace, b.pace], [a.pace, b.pace]);
  const end = by === "turn" ? diff.turns.length : lengthOf(paces);
  const busy = a.state.seeking || b.state.seeking;

  const { go: goA } = a;
  const { go: goB } = b;
  useEffect(() => {
    goA(by, at);
    goB(by, at);
  }, [by, at, goA, goB]);
  useEffect(() => {
    if (!playing || busy) return; // wait for both sides to load
    if (at >= end) {
      setPlaying(false);
      return;
    }
    const wait = by === "turn" ? turnMs / speed : tickMs;
    const t = setTimeout(() => {
      const next = by === "turn" ? at + 1 : skipIdle(at, paces) + tickMs * speed;
      setAt(Math.min(end, next));
    }, wait);
    return () => clearTimeout(t);
  }, [playing, busy, by, at, end, speed, paces]);

  const toggle = () => {
    if (!playing && at >= end) setAt(0);
    setPlaying(!playing);
  };
  const go = (to: (now: number) => number) => {
    setPlaying(false); // a step by hand stays where it leads
    setAt((now) => Math.max(0, Math.min(end, to(now))));
  };
  const step = (n: number) => go((now) => now + n * (by === "turn" ? 1 : 1000));
  useKeys({
    " ": toggle,
    ArrowLeft: () => step(-1),
    ArrowRight: () => step(1),
    Home: () => go(() => 0),
    End: () => go(() => end),
  });
  const positionText =
    by === "turn" ? `turn ${diff.common_turns + at} of ${diff.common_turns + end}` : `${clock(at)} of ${clock(end)}`;
  return (
    <section aria-label="Playback of both sides" className="mb-6 rounded-lg border border-line bg-panel">
      <div className="grid grid-cols-1 divide-line max-sm:divide-y sm:grid-cols-2 sm:divide-x">
        <Side name="A" side={a} diff={diff} />
        <Side name="B" side={b} diff={diff} />
      </div>
      <div className="flex flex-wrap items-center gap-3 border-t border-line px-3 py-2 text-[13px]">
        <Button
          data-keys-pass
          look={playing ? "primary" : "plain"}
          icon={playing ? "pause" : "play"}
          onClick={toggle}
          className="w-20 justify-center"
        >
          {playing ? "Pause" : "Play"}
        </Button>
        <input
          type="range"
          aria-label="Position of both sides"
          aria-valuetext={positionText}
          className="min-w-40 flex-1 accent-accent"
          min={0}
          max={end}
          value={at}
          onKeyDown={(e) => {
            const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[e.key];
            if (by === undefined) return;
            e.preventDefault(); // the native step is one millisecond
            step(by);
          }}
          onChange={(e) => go(() => Number(e.target.value))}
        />
        <span className="tabular-nums">{positionText}</span>
        <label className="flex items-center gap-1.5 text-muted">
          Step by
          <select
            className={`${field} h-7`}
            value={by}
            onChange={(e) => {
              setBy(e.target.value as typeof by);
              setAt(0);
            }}
          >
            <option value="turn">turn</option>
            <option value="time">time</option>
          </select>
        </label>
        <Speed max={maxSpeed} value={speed} onChange={setSpeed} />
      </div>
    </section>
  );
}

type Played = ReturnType<typeof useSide>;

function Side({ name, side: { state, shownFrom }, diff }: { name: string; side: Played; diff: Diff }) {
  const { view } = state;
  return (
    <div className="min-w-0">
      <p className="border-b border-line px-3 py-1 text-xs text-muted">
        <span className="font-semibold text-text">{name}</span> · event {state.at}
        {diff.common_turns > 0 &&
          ` · ${plural(diff.common_turns, "turn")} before this ${diff.common_turns === 1 ? "is" : "are"} folded`}
      </p>
      {state.error !== undefined && <ErrorBox error={state.error} />}
      {state.at <= shownFrom && (
        <p className="px-3 pt-2 text-[13px] text-muted">Playback begins where A and B differ.</p>
      )}
      {view ? (
        <MiniConversation
          parts={view}
          label={`${name}, played back`}
          from={shownFrom}
          still
          className="h-80 max-sm:h-[20dvh]"
        />
      ) : (
        <Loading what={name} />
      )}
    </div>
  );
}

/** One side: its player, and a function that moves it. */
function useSide(diff: Diff, which: "a" | "b") {
  const { id, at: end } = diff[which];
  const stops = useMemo(() => stopsOf(diff, which), [diff, which]);
  const from = stops[0] as number;
  const opening = Math.min(end, from + 1); // with the first item that differs: before it there may be nothing to see
  const shownFrom = diff.turns[0]?.[which]?.offset ?? from;
  const [deck, state] = useDeck(id, Math.max(1, opening));
  const { index, axis } = state;
  // biome-ignore lint/correctness/useExhaustiveDependencies: when its index and events are loaded
  const base = useMemo(() => timeOf(deck, state, from), [deck, index, axis, state.seeking, from]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: as above
  const last = useMemo(() => timeOf(deck, state, end - 1), [deck, index, axis, state.seeking, end]);
  const pace = useMemo<Pace>(() => {
    const gaps = (index?.gaps ?? []).filter((g) => g.ms > idleMs && !g.skipped && axis === "time");
    return {
      length: Math.max(0, last - base),
      gaps: gaps.map((g) => ({ from: g.position_ms - base, to: g.position_ms + g.ms - base })),
    };
  }, [index, axis, base, last]);
  const ready = state.entry !== undefined;
  const go = useMemo(
    () => (by: "turn" | "time", at: number) => {
      if (!ready) return; // its length is not known yet; it opens where the sides diverge
      if (at === 0) deck.seek(opening);
      else if (by === "turn") deck.seek(stops[Math.min(at, stops.length - 1)] as number);
      else if (base + at >= last) deck.seek(end);
      else if (axis === "time") deck.seekPosition(base + at);
      else deck.seek(from + Math.floor(at / eventMs));
    },
    [deck, ready, axis, from, opening, stops, base, last, end],
  );
  return { state, shownFrom, pace, go };
}

/** How long an event without times is shown, in milliseconds. */
const eventMs = 1000 / eventsPerSecond;

/**
 * When an event is shown, in milliseconds. If the event is not loaded: when its
 * invocation starts or ends.
 */
function timeOf(deck: Deck, { index, axis, position }: DeckState, offset: number): number {
  if (axis === "events") return offset * eventMs;
  const event = deck.event(offset);
  if (event) return deck.positionOf(event) ?? position;
  const i = index?.invocations.findLast((i) => i.first <= offset);
  const timestamp = i && (i.first === offset ? i.started_at : i.ended_at);
  const known = timestamp === undefined ? undefined : deck.positionOf({ offset, timestamp, channel: "agentState" });
  return known ?? (offset >= (index?.at ?? 0) - 1 ? (index?.duration_ms ?? position) : position);
}
