import { Link } from "@tanstack/react-router";
import { Icon } from "../icons";
import { StatusChip } from "../status";
import { IconButton } from "../ui";
import type { Lane } from "./layout";
import { nameOf } from "./tree";

interface Props {
  lane: Lane;
  asked: string;
  onUndo: (marker: string) => void;
  busy: boolean;
}

/** What a lane is called, and what can be done with it. */
export function BranchLabel({ lane: { branch: b, depth }, asked, onUndo, busy }: Props) {
  const taken = b.kind === "rewound";
  const name = nameOf(b);
  return (
    <div
      className="flex h-full items-center gap-1.5 pr-2 text-[13px]"
      style={{ paddingLeft: 12 + Math.min(depth, 5) * 14 }}
    >
      {depth > 0 && <Icon name={taken ? "rewind" : "fork"} className="size-3.5 text-muted" />}
      {taken ? (
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
      {taken && b.marker && (
        <IconButton
          className="size-7"
          label="Bring back"
          icon="undo"
          disabled={busy}
          onClick={() => b.marker && onUndo(b.marker)}
        />
      )}
      {!b.current && (
        <Link
          to="/compare"
          search={taken ? { a: b.session, at_a: b.to, b: asked } : { a: asked, b: b.session }}
          aria-label={`Compare with ${name}`}
          className="rounded px-1 text-xs text-accent hover:underline"
        >
          Compare
        </Link>
      )}
    </div>
  );
}
