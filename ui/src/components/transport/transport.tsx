import { useMemo } from "react";
import type { Deck, DeckState } from "@/data/deck";
import { clock } from "../format";
import { Button, IconButton, Kbd } from "../ui";
import { axisOf, idleShare } from "./axis";
import { SeekBar } from "./seek-bar";
import { Speed } from "./speed";

interface Props {
  deck: Deck;
  state: DeckState;
  cut: boolean;
  onCut: (cut: boolean) => void;
  /** No live session exists. */
  recording?: boolean;
}

/** The playback controls, for live sessions and recordings. */
export function Transport({ deck, state, cut, onCut, recording }: Props) {
  const { index, head, at, playing, live } = state;
  const from = Date.parse(index?.first_at ?? "") || state.timeMs;
  const to = Math.max(Date.parse(index?.last_at ?? "") || from, live ? state.timeMs : 0);
  const gaps = index?.gaps;
  const axis = useMemo(() => axisOf(from, to, gaps ?? [], cut), [from, to, gaps, cut]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: head changes with each event; recompute only with a new index
  const times = useMemo(() => timesOf(deck, head), [deck, index]);
  const positionText = `event ${at} of ${head}, ${clock(state.timeMs - from)} of ${clock(to - from)}`;
  if (!index || head === 0) return null;
  return (
    <section aria-label="Playback" className="shrink-0 border-t border-line bg-panel px-4 pt-1.5 pb-2">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <div className="flex items-center">
          <IconButton icon="start" label="Go to start" keys="Home" onClick={() => deck.seek(1)} />
          <IconButton icon="back" label="Step back" keys="," onClick={() => deck.step(-1, "item")} />
          <Button
            data-keys-pass
            look={playing ? "primary" : "plain"}
            icon={playing ? "pause" : "play"}
            onClick={deck.toggle}
            title="Space"
            className="mx-1 w-20 justify-center"
          >
            {playing ? "Pause" : "Play"}
          </Button>
          <IconButton icon="forward" label="Step forward" keys="." onClick={() => deck.step(1, "item")} />
          <IconButton icon="end" label="Go to end" keys="End" onClick={() => deck.seek(head)} />
        </div>
        <span className="text-[13px] tabular-nums">
          <span className="font-medium">{clock(state.timeMs - from, true)}</span>
          <span className="text-muted"> / {clock(to - from)}</span>
        </span>
        <span className="text-[13px] text-muted tabular-nums">
          event {at.toLocaleString("en")} of {head.toLocaleString("en")}
        </span>
        {!live && !recording && <PlaybackNotice state={state} to={to} onLive={deck.goLive} />}
        <div className="ml-auto flex items-center gap-3 text-[13px]">
          <Speed value={state.speed} onChange={deck.setSpeed} />
          <label className="flex items-center gap-1.5 text-muted">
            <input type="checkbox" checked={state.skipIdle} onChange={(e) => deck.setSkipIdle(e.target.checked)} /> Skip
            idle
          </label>
          <label className="flex items-center gap-1.5 text-muted" title="Show idle times shorter on the bar (a)">
            <input type="checkbox" checked={cut} onChange={(e) => onCut(e.target.checked)} /> Shorten idle
            {!cut && idleShare(index.duration_ms, index.gaps) > 0.5 && (
              <span className="text-warn">{Math.round(idleShare(index.duration_ms, index.gaps) * 100)}%</span>
            )}
          </label>
        </div>
      </div>
      <SeekBar
        index={index}
        axis={axis}
        now={state.timeMs}
        times={times}
        positionText={positionText}
        onSeek={deck.seekTime}
        onStart={() => deck.seek(1)}
        onEnd={() => deck.seek(head)}
      />
    </section>
  );
}

/** Sessions with more events are drawn from the index alone. */
const maxTimes = 20_000;

function timesOf(deck: Deck, head: number): Float64Array | undefined {
  if (head > maxTimes) return undefined;
  const times = new Float64Array(head);
  for (let i = 0; i < head; i++) {
    const e = deck.event(i);
    if (!e) return undefined;
    times[i] = Date.parse(e.timestamp);
  }
  return times;
}

function PlaybackNotice({ state, to, onLive }: { state: DeckState; to: number; onLive: () => void }) {
  return (
    <span className="flex items-center gap-2 text-[13px]">
      <span className="rounded-full bg-accent-soft px-2 py-px text-xs font-medium">
        Playback (the agent is not called)
      </span>
      <span className="text-muted tabular-nums">{clock(to - state.timeMs)} behind live</span>
      <Button onClick={onLive} className="h-7">
        Go live <Kbd>L</Kbd>
      </Button>
    </span>
  );
}
