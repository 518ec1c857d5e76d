import { plural } from "../format";
import { Button, Kbd } from "../ui";
import type { BranchLane, Spot } from "./layout";

interface Props {
  lane: BranchLane;
  spot: Spot;
  name: string;
  onOpen: () => void;
  onFork: () => void;
  onCompare: () => void;
}

/** Describes the selected spot of the graph, and offers its actions. */
export function Chosen({ lane, spot, name, onOpen, onFork, onCompare }: Props) {
  const folded = spot.kind === "folded";
  return (
    <div className="flex flex-wrap items-center gap-2 border-t border-line bg-panel px-4 py-2 text-[13px]">
      <p className="min-w-0 flex-1 truncate">
        <span className="font-medium">
          {spot.kind === "turn"
            ? spot.turn.title || spot.turn.thread
            : folded
              ? plural(spot.turns, "turn")
              : "No turn yet"}
        </span>
        <span className="text-muted">
          {" "}
          · {name}
          {spot.kind === "turn" && ` · offsets ${spot.turn.first} to ${spot.turn.last}`}
        </span>
      </p>
      {!(folded && spot.from < 0) && (
        <Button onClick={onOpen}>
          {folded ? "Unfold" : "Open"} <Kbd>Enter</Kbd>
        </Button>
      )}
      {!folded && (
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
