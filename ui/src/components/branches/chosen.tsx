import { plural } from "../format";
import { Button, Kbd } from "../ui";
import type { Lane, Spot } from "./layout";

interface Props {
  lane: Lane;
  spot: Spot;
  name: string;
  onOpen: () => void;
  onFork: () => void;
  onCompare: () => void;
}

/** What was chosen in the graph, in words, and what can be done with it. */
export function Chosen({ lane, spot, name, onOpen, onFork, onCompare }: Props) {
  const run = spot.kind === "run";
  return (
    <div className="flex flex-wrap items-center gap-2 border-t border-line bg-panel px-4 py-2 text-[13px]">
      <p className="min-w-0 flex-1 truncate">
        <span className="font-medium">
          {spot.kind === "turn"
            ? spot.turn.title || spot.turn.thread
            : run
              ? plural(spot.turns, "turn")
              : "No turn yet"}
        </span>
        <span className="text-muted">
          {" "}
          · {name}
          {spot.kind === "turn" && ` · offsets ${spot.turn.first} to ${spot.turn.last}`}
        </span>
      </p>
      {!(run && spot.from < 0) && (
        <Button onClick={onOpen}>
          {run ? "Unfold" : "Open"} <Kbd>Enter</Kbd>
        </Button>
      )}
      {!run && (
        <Button icon="fork" onClick={onFork}>
          Fork here <Kbd>b</Kbd>
        </Button>
      )}
      <Button onClick={onCompare}>
        {lane.branch.current ? "Compare with the head" : "Compare with this session"} <Kbd>c</Kbd>
      </Button>
    </div>
  );
}
