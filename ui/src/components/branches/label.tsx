import { Link } from "@tanstack/react-router";
import { Icon } from "../icons";
import { StatusChip } from "../status";
import { IconButton } from "../ui";
import type { BranchLane } from "./layout";
import { branchName } from "./tree";

interface Props {
  lane: BranchLane;
  /** Where it leaves its parent. */
  leaves?: { turn: number; within: boolean };
  parentName: string;
  currentId: string;
  onUndo: (marker: string) => void;
  busy: boolean;
}

/** The name of a lane, and its actions. */
export function BranchLabel({ lane: { branch: b, depth }, leaves, parentName, currentId, onUndo, busy }: Props) {
  const reverted = b.kind === "rewound";
  const name = branchName(b);
  return (
    <div
      className="flex h-full items-center gap-1.5 pr-2 text-[13px]"
      style={{ paddingLeft: 12 + Math.min(depth, 5) * 14 }}
    >
      {depth > 0 && <Icon name={reverted ? "rewind" : "fork"} className="size-3.5 text-muted" />}
      <div className="min-w-0 flex-1">
        {reverted ? (
          <span className="block truncate text-muted" title={name}>
            {name}
          </span>
        ) : (
          <Link
            to="/s/$id"
            params={{ id: b.session }}
            search={b.current ? { view: "branches" } : {}}
            title={name}
            dir="auto"
            className={`block truncate pointer-coarse:py-1.5 hover:underline ${b.current ? "font-semibold text-accent" : "font-medium"}`}
          >
            {name}
          </Link>
        )}
        <Origin reverted={reverted} agent={b.agent} leaves={leaves} parentName={parentName} offset={b.fork_at} />
      </div>
      {b.current && <span className="sr-only">this session</span>}
      {b.status && (
        <span className="max-sm:hidden">
          <StatusChip status={b.status} />
        </span>
      )}
      {reverted && b.marker && (
        <IconButton
          className="size-7"
          label="Restore"
          icon="undo"
          disabled={busy}
          onClick={() => b.marker && onUndo(b.marker)}
        />
      )}
      {!b.current && (
        <Link
          to="/compare"
          search={reverted ? { a: b.session, at_a: b.to, b: currentId } : { a: currentId, b: b.session }}
          aria-label={`Compare with ${name}`}
          className="inline-flex items-center justify-center rounded px-1 max-sm:hidden text-xs text-accent pointer-coarse:min-h-11 pointer-coarse:min-w-11 hover:underline"
        >
          Compare
        </Link>
      )}
    </div>
  );
}

/** Who answers in a branch, and where it leaves its parent. */
function Origin({ reverted, agent, leaves, parentName, offset }: OriginProps) {
  if (!agent && !leaves) return null;
  const verb = reverted ? "left" : "forked";
  const where =
    leaves && (leaves.turn === 0 ? "before turn 1" : `${leaves.within ? "in" : "after"} turn ${leaves.turn}`);
  return (
    <p
      className="truncate text-xs text-muted"
      title={where && `${verb} ${where} of ${parentName}, at offset ${offset}`}
    >
      {agent}
      {agent && where && " · "}
      {where && (
        <>
          <span className="max-sm:sr-only">{verb} </span>
          {where}
          <span className="max-sm:sr-only">
            {" "}
            of <bdi>{parentName}</bdi>, at offset {offset}
          </span>
        </>
      )}
    </p>
  );
}

interface OriginProps {
  reverted: boolean;
  agent?: string;
  leaves: Props["leaves"];
  parentName: string;
  offset: number;
}
