import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api } from "@/data/api";
import type { Branch } from "@/fold/types";
import { useThrottled } from "@/hooks/tick";
import { plural } from "../format";
import { Icon } from "../icons";
import { StatusChip } from "../status";
import { Button, ErrorBox, Loading } from "../ui";

interface Props {
  id: string;
  head: number;
  onUndo: (marker: string) => void;
  busy: boolean;
}

/** The tree of conversations that share a beginning with this one. */
export function Branches({ id, head, onUndo, busy }: Props) {
  const found = useQuery({
    queryKey: ["branches", id, useThrottled(head, 1000)],
    queryFn: ({ signal }) => api.branches(id, { signal }),
    placeholderData: (old) => old,
  });
  if (found.isPending) return <Loading what="the branches" />;
  if (found.isError)
    return (
      <div className="p-6">
        <ErrorBox error={found.error} onRetry={() => void found.refetch()} />
      </div>
    );
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section className="h-full overflow-auto p-6" aria-label="Branches" tabIndex={0}>
      <h2 className="mb-1 font-semibold">Branches</h2>
      <p className="mb-4 text-[13px] text-muted">
        Sessions that share a beginning, and what was taken back in this one.
      </p>
      <ul className="flex max-w-3xl flex-col">
        {treeOf(found.data.branches).map(({ branch, depth }) => (
          <li key={branch.id} style={{ paddingLeft: depth * 28 }} className="relative">
            <BranchRow branch={branch} depth={depth} asked={id} onUndo={onUndo} busy={busy} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function BranchRow({
  branch: b,
  depth,
  asked,
  onUndo,
  busy,
}: {
  branch: Branch;
  depth: number;
  asked: string;
  onUndo: (m: string) => void;
  busy: boolean;
}) {
  const taken = b.kind === "rewound";
  return (
    <div
      className={`mb-2 rounded-md border px-3 py-2 ${b.current ? "border-accent bg-panel" : "border-line bg-panel"} ${taken ? "border-dashed" : ""}`}
    >
      <div className="flex flex-wrap items-center gap-2">
        {depth > 0 && <Icon name={taken ? "rewind" : "fork"} className="size-3.5 text-muted" />}
        {taken ? (
          <span className="font-medium">Taken back{b.verb ? ` by ${wordOf(b.verb)}` : ""}</span>
        ) : (
          <Link to="/s/$id" params={{ id: b.session }} className="font-medium hover:underline">
            {b.title || b.id}
          </Link>
        )}
        {b.status && <StatusChip status={b.status} />}
        {b.current && <span className="text-xs font-medium text-accent">this session</span>}
        <span className="ml-auto text-xs text-muted">
          {depth > 0 && `from offset ${b.fork_at} · `}
          {plural(Math.max(0, b.to - b.from), "event")}
        </span>
        {taken && b.marker && (
          <Button look="ghost" icon="undo" busy={busy} onClick={() => b.marker && onUndo(b.marker)}>
            Bring back
          </Button>
        )}
        {!taken && !b.current && (
          <Link to="/compare" search={{ a: asked, b: b.session }} className="text-[13px] text-accent hover:underline">
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
              className={`hover:underline ${taken ? "line-through" : ""}`}
            >
              <span className="tabular-nums">{i.first}</span> {i.title || i.invocation}
            </Link>
          </li>
        ))}
      </ol>
    </div>
  );
}

function wordOf(verb: string): string {
  return verb
    .replace("session.", "")
    .replace("rewound", "a rewind")
    .replace("cleared", "a clear")
    .replace("overwritten", "an overwrite");
}

/** Each branch after the one that it leaves, and so far to the right. */
export function treeOf(branches: Branch[]): { branch: Branch; depth: number }[] {
  const ids = new Set(branches.map((b) => b.id));
  const out: { branch: Branch; depth: number }[] = [];
  const seen = new Set<string>();
  const add = (branch: Branch, depth: number) => {
    if (seen.has(branch.id)) return;
    seen.add(branch.id);
    out.push({ branch, depth });
    for (const b of branches) if (b.parent === branch.id) add(b, depth + 1);
  };
  for (const b of branches) if (!b.parent || !ids.has(b.parent)) add(b, 0);
  return out;
}
