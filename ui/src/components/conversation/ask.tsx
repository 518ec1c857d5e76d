import { useMutation } from "@tanstack/react-query";
import type { Permission } from "@/fold/types";
import { Button, ErrorBox } from "../ui";

interface Props {
  permission: Permission;
  /** Nobody can answer where nothing is behind the page. */
  onAnswer?: (p: Permission, option?: string) => Promise<unknown>;
}

/** The agent asks whether it may go on. */
export function Ask({ permission: p, onAnswer }: Props) {
  const answer = useMutation({ mutationFn: async (option: string) => onAnswer?.(p, option) });
  const chosen = p.options.find((o) => o.id === p.option);
  return (
    <div className="rounded-md border border-warn/50 bg-warn-soft px-3 py-2 text-[13px]">
      <p className="font-medium">{p.message || "The agent asks for permission"}</p>
      {p.status !== "open" ? (
        <p className="text-muted">
          {chosen
            ? `Answered: ${chosen.name || chosen.id}${p.answered_by ? ` (${p.answered_by})` : ""}`
            : "Nobody answered"}
        </p>
      ) : (
        <div className="mt-2 flex flex-wrap gap-2">
          {p.options.map((o) => (
            <Button
              key={o.id}
              look={o.kind?.startsWith("allow") ? "primary" : "plain"}
              busy={answer.isPending}
              disabled={!onAnswer}
              onClick={() => answer.mutate(o.id)}
            >
              {o.name || o.id}
            </Button>
          ))}
        </div>
      )}
      {answer.isError && (
        <div className="mt-2">
          <ErrorBox error={answer.error} />
        </div>
      )}
    </div>
  );
}
