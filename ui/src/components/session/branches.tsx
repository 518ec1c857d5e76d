import { Link } from "@tanstack/react-router";
import type { Branch } from "@tapedeck/client";
import { useState } from "react";
import { useBranches } from "@/hooks/branches";
import { Graph, type GraphProps } from "../branches/graph";
import { branchName, treeOf } from "../branches/tree";
import { plural } from "../format";
import { Icon } from "../icons";
import { StatusChip } from "../status";
import { Button, ErrorBox, Loading } from "../ui";

/** The tree of sessions that share events with this one. */
export function Branches(p: Omit<GraphProps, "branches">) {
  const { id, onUndo, busy } = p;
  const found = useBranches(id, p.index);
  const [asList, setAsList] = useState(false);
  if (found.isPending) return <Loading what="the branches" />;
  if (found.isError)
    return (
      <div className="p-6">
        <ErrorBox error={found.error} onRetry={() => void found.refetch()} />
      </div>
    );
  const { branches, cut } = found.data;
  return (
    <div className="flex h-full flex-col">
      <div className="flex items-center gap-3 border-b border-line px-4 py-2">
        <h2 className="font-semibold">Branches</h2>
        <p className="min-w-0 flex-1 truncate text-[13px] text-muted">
          Sessions that share events with this one, and its reverted events.
        </p>
        {cut && <p className="text-[13px] font-medium">The tree is too large: not all branches are shown.</p>}
        <Button aria-pressed={asList} onClick={() => setAsList(!asList)}>
          As a list
        </Button>
      </div>
      {asList ? (
        <List branches={branches} id={id} onUndo={onUndo} busy={busy} />
      ) : (
        <div className="min-h-0 flex-1">
          <Graph {...p} branches={branches} />
        </div>
      )}
    </div>
  );
}

function List({ branches, id, onUndo, busy }: Pick<GraphProps, "branches" | "id" | "onUndo" | "busy">) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard
    <section className="min-h-0 flex-1 overflow-auto p-4" aria-label="Branches" tabIndex={0}>
      <ul className="flex max-w-3xl flex-col">
        {treeOf(branches).map(({ branch, depth }) => (
          <li key={branch.id} style={{ paddingLeft: Math.min(depth, 8) * 28 }} className="relative">
            <BranchRow branch={branch} depth={depth} currentId={id} onUndo={onUndo} busy={busy} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function BranchRow({
  branch: b,
  depth,
  currentId,
  onUndo,
  busy,
}: {
  branch: Branch;
  depth: number;
  currentId: string;
  onUndo: (m: string) => void;
  busy: boolean;
}) {
  const reverted = b.kind === "rewound";
  return (
    <div
      className={`mb-2 rounded-md border px-3 py-2 ${b.current ? "border-accent bg-panel" : "border-line bg-panel"} ${reverted ? "border-dashed" : ""}`}
    >
      <div className="flex flex-wrap items-center gap-2">
        {depth > 0 && <Icon name={reverted ? "rewind" : "fork"} className="size-3.5 text-muted" />}
        {reverted ? (
          <span className="font-medium">{branchName(b)}</span>
        ) : (
          <Link to="/s/$id" params={{ id: b.session }} className="font-medium hover:underline">
            {branchName(b)}
          </Link>
        )}
        {b.status && <StatusChip status={b.status} />}
        {b.current && <span className="text-xs font-medium text-accent">this session</span>}
        <span className="ml-auto text-xs text-muted">
          {depth > 0 && `from offset ${b.fork_at} · `}
          {plural(Math.max(0, b.to - b.from), "event")}
        </span>
        {reverted && b.marker && (
          <Button look="ghost" icon="undo" busy={busy} onClick={() => b.marker && onUndo(b.marker)}>
            Restore
          </Button>
        )}
        {!b.current && (
          <Link
            to="/compare"
            search={reverted ? { a: currentId, at_a: b.to, b: currentId } : { a: currentId, b: b.session }}
            className="text-[13px] text-accent hover:underline"
          >
            Compare
          </Link>
        )}
      </div>
      <ol className="mt-1 text-[13px] text-muted">
        {(b.invocations ?? []).slice(-8).map((i) => (
          <li key={i.invocation} className="truncate">
            <Link
              to="/s/$id"
              params={{ id: b.session }}
              search={{ at: i.first + 1 }}
              className={`hover:underline ${reverted ? "line-through" : ""}`}
            >
              <span className="tabular-nums">{i.first}</span> <bdi>{i.title || i.invocation}</bdi>
            </Link>
          </li>
        ))}
      </ol>
    </div>
  );
}
