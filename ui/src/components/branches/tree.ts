import type { Branch } from "@tapedeck/client";

/** The branches in tree order, each after its parent, with its depth. */
export function treeOf(branches: Branch[]): { branch: Branch; depth: number }[] {
  const ids = new Set(branches.map((b) => b.id));
  const children = new Map<string, Branch[]>();
  for (const b of branches) {
    if (!b.parent) continue;
    const list = children.get(b.parent);
    if (list) list.push(b);
    else children.set(b.parent, [b]);
  }
  const out: { branch: Branch; depth: number }[] = [];
  const seen = new Set<string>();
  const add = (branch: Branch, depth: number) => {
    if (seen.has(branch.id)) return;
    seen.add(branch.id);
    out.push({ branch, depth });
    for (const b of children.get(branch.id) ?? []) add(b, depth + 1);
  };
  for (const b of branches) if (!b.parent || !ids.has(b.parent)) add(b, 0);
  return out;
}

/** The displayed name of a branch. */
export function branchName(b: Branch): string {
  return b.kind === "rewound" ? `Reverted${b.verb ? ` by ${jumpName(b.verb)}` : ""}` : b.title || b.id;
}

function jumpName(verb: string): string {
  return verb
    .replace("session.", "")
    .replace("rewound", "a rewind")
    .replace("cleared", "a clear")
    .replace("overwritten", "an overwrite");
}
