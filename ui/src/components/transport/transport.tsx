import { hasOpenRun } from "@tapedeck/client";
import type { Deck, DeckState } from "@tapedeck/client/player";
import { useMemo } from "react";
import { clock, plural } from "../format";
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
  const { index, head, at, playing, live, position, length, axis: kind } = state;
  const timed = kind === "time";
  const gaps = index?.gaps;
  const axis = useMemo(() => axisOf(kind, length, gaps ?? [], cut), [kind, length, gaps, cut]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: head changes with each event; recompute only with a new index
  const positions = useMemo(() => positionsOf(deck, head, timed), [deck, index, timed]);
  const times = timed ? `, ${clock(position)} of ${clock(length)}` : "; the bar counts events";
  const positionText = `event ${at} of ${head}${times}`;
  const running = live && hasOpenRun(state.view?.session.status);
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
            icon={playing || running ? "pause" : "play"}
            onClick={deck.toggle}
            title="Space"
            className="mx-1 w-20 justify-center"
          >
            {playing || running ? "Pause" : "Play"}
          </Button>
          <IconButton icon="forward" label="Step forward" keys="." onClick={() => deck.step(1, "item")} />
          <IconButton icon="end" label="Go to end" keys="End" onClick={deck.goLive} />
        </div>
        {timed ? (
          <span className="text-[13px] tabular-nums">
            <span className="font-medium">{clock(position, true)}</span>
            <span className="text-muted"> / {clock(length, true)}</span>
          </span>
        ) : (
          <span className="text-[13px] text-muted">The bar counts events</span>
        )}
        <span className="text-[13px] text-muted tabular-nums">
          event {at.toLocaleString("en")} of {head.toLocaleString("en")}
        </span>
        {!live && !recording && <PlaybackNotice state={state} onLive={deck.goLive} />}
        {running && <LiveNotice />}
        {state.span && (
          <span role="status" className="text-[13px] text-muted">
            Plays one part at {state.span.speed}×, then stops
          </span>
        )}
        <div className="ml-auto flex items-center gap-3 text-[13px]">
          <Speed value={state.speed} onChange={deck.setSpeed} />
          <label className="flex items-center gap-1.5 text-muted">
            <input type="checkbox" checked={state.skipIdle} onChange={(e) => deck.setSkipIdle(e.target.checked)} /> Skip
            idle
          </label>
          <label className="flex items-center gap-1.5 text-muted" title="Show idle times shorter on the bar (a)">
            <input type="checkbox" checked={cut} onChange={(e) => onCut(e.target.checked)} /> Shorten idle
            {!cut && idleShare(index) > 0.5 && <span className="text-warn">{Math.round(idleShare(index) * 100)}%</span>}
          </label>
        </div>
      </div>
      <SeekBar
        index={index}
        axis={axis}
        position={position}
        positions={positions}
        positionText={positionText}
        onSeek={deck.seekPosition}
        onStart={() => deck.seek(1)}
        onEnd={deck.goLive}
      />
    </section>
  );
}

/** Sessions with more events are drawn from the index alone. */
const maxPositions = 20_000;

function positionsOf(deck: Deck, head: number, timed: boolean): Float64Array | undefined {
  if (head > maxPositions) return undefined;
  const positions = new Float64Array(head);
  for (let i = 0; i < head; i++) {
    const e = deck.event(i);
    const at = e && (timed ? deck.positionOf(e) : i + 1);
    if (at === undefined) return undefined;
    positions[i] = at;
  }
  return positions;
}

function LiveNotice() {
  return (
    <span
      className="rounded-full bg-run-soft px-2 py-px text-xs font-medium text-run"
      title="New events are shown as they arrive"
    >
      Live
    </span>
  );
}

function PlaybackNotice({ state, onLive }: { state: DeckState; onLive: () => void }) {
  const { axis, at, head, length, position } = state;
  const behind = axis === "time" ? clock(Math.max(0, length - position)) : plural(Math.max(0, head - at), "event");
  return (
    <span className="flex items-center gap-2 text-[13px]">
      <span className="rounded-full bg-accent-soft px-2 py-px text-xs font-medium">
        Playback (the agent is not called)
      </span>
      <span className="text-muted tabular-nums">{behind} behind live</span>
      <Button onClick={onLive} className="h-7">
        Go live <Kbd>L</Kbd>
      </Button>
    </span>
  );
}
