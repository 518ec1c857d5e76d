import { Link } from "@tanstack/react-router";
import { Icon } from "../icons";
import { StatusChip } from "../status";
import { IconButton } from "../ui";
import type { BranchLane } from "./layout";
import { branchName } from "./tree";

interface Props {
  lane: BranchLane;
  currentId: string;
  onUndo: (marker: string) => void;
  busy: boolean;
}

/** The name of a lane, and its actions. */
export function BranchLabel({ lane: { branch: b, depth }, currentId, onUndo, busy }: Props) {
  const reverted = b.kind === "rewound";
  const name = branchName(b);
  return (
    <div
      className="flex h-full items-center gap-1.5 pr-2 text-[13px]"
      style={{ paddingLeft: 12 + Math.min(depth, 5) * 14 }}
    >
      {depth > 0 && <Icon name={reverted ? "rewind" : "fork"} className="size-3.5 text-muted" />}
      {reverted ? (
        <span className="min-w-0 flex-1 truncate text-muted" title={name}>
          {name}
        </span>
      ) : (
        <Link
          to="/s/$id"
          params={{ id: b.session }}
          search={b.current ? { view: "branches" } : {}}
          title={name}
          className={`min-w-0 flex-1 truncate hover:underline ${b.current ? "font-semibold text-accent" : "font-medium"}`}
        >
          {name}
        </Link>
      )}
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
          className="rounded px-1 text-xs text-accent hover:underline"
        >
          Compare
        </Link>
      )}
    </div>
  );
}
