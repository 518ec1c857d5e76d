import { useMutation } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Permission, PermissionOption } from "@/fold/types";
import { Button, ErrorBox } from "../ui";
import { actionOf, visible } from "./action";
import { AskAction } from "./ask-action";

interface Props {
  permission: Permission;
  /** Nobody can answer where nothing is behind the page. */
  onAnswer?: (p: Permission, option?: string) => Promise<unknown>;
}

/** The agent asks whether it may go on. */
export function Ask({ permission: p, onAnswer }: Props) {
  const answer = useMutation({ mutationFn: async (option: string) => onAnswer?.(p, option) });
  const action = useMemo(() => actionOf(p.action), [p.action]);
  const isOpen = p.status === "open";
  const title = p.message && p.message !== action?.command ? p.message : titleOf(action?.tool);
  return (
    <div
      className={`rounded-md border px-3 py-2 text-[13px] ${isOpen ? "border-warn/50 bg-warn-soft" : "border-line bg-panel"}`}
    >
      <p className="max-h-40 overflow-auto font-medium [overflow-wrap:anywhere] whitespace-pre-wrap">
        {visible(title)}
      </p>
      {!isOpen && <Answered permission={p} />}
      {action && isOpen && <AskAction action={action} message={p.message} />}
      {action && !isOpen && (
        <details className="mt-1">
          <summary className="cursor-pointer text-muted">What it was about</summary>
          <AskAction action={action} message={p.message} />
        </details>
      )}
      {isOpen && (
        <Options
          options={p.options}
          busy={answer.isPending}
          disabled={!onAnswer}
          onChoose={(option) => answer.mutate(option)}
        />
      )}
      {answer.isError && (
        <div className="mt-2">
          <ErrorBox error={answer.error} />
        </div>
      )}
    </div>
  );
}

function titleOf(tool: string | undefined): string {
  return tool ? `May the agent use ${tool}?` : "The agent asks for permission";
}

const verdicts: Record<string, [mark: string, className: string]> = {
  allow: ["✓", "text-ok"],
  reject: ["✕", "text-bad"],
};

function Answered({ permission: p }: { permission: Permission }) {
  if (!p.option) return <p className="text-muted">Nobody answered</p>;
  const chosen = p.options.find((o) => o.id === p.option);
  const [mark, colour] = verdicts[chosen?.kind?.split("_")[0] ?? ""] ?? [];
  return (
    <p className="[overflow-wrap:anywhere] text-muted">
      {mark && (
        <span aria-hidden="true" className={`mr-1.5 font-medium ${colour}`}>
          {mark}
        </span>
      )}
      {visible(`Answered: ${chosen ? labelOf(chosen) : p.option}${p.answered_by ? ` (${p.answered_by})` : ""}`)}
    </p>
  );
}

const lasts = (o: PermissionOption) => o.kind?.endsWith("_always") ?? false;
const looks = { allow_once: "primary", reject_once: "danger" } as const;
const order = ["allow_once", "reject_once"];

/** What an option does, by its kind, and the names that say no more and no less. */
const effects: Record<string, { does: string; said: RegExp }> = {
  allow_once: { does: "allows once", said: /^allow( once)?$/i },
  allow_always: { does: "allows always", said: /^(allow always|always allow)$/i },
  reject_once: { does: "rejects once", said: /^reject( once)?$/i },
  reject_always: { does: "rejects always", said: /^(reject always|always reject)$/i },
};

/** The name of an option is the agent's: where it does not say what the option does, its kind does. */
function labelOf(o: PermissionOption): string {
  const name = visible(o.name || o.id);
  const effect = effects[o.kind ?? ""];
  return !effect || effect.said.test(name) ? name : `${name} (${effect.does})`;
}

/** Those that answer once come first. Those that last say how far they reach. */
function Options({
  options,
  busy,
  disabled,
  onChoose,
}: {
  options: PermissionOption[];
  busy: boolean;
  disabled: boolean;
  onChoose: (option: string) => void;
}) {
  const rank = (o: PermissionOption) => (order.indexOf(o.kind ?? "") + order.length + 1) % (order.length + 1);
  const once = options.filter((o) => !lasts(o)).toSorted((a, b) => rank(a) - rank(b));
  const button = (o: PermissionOption) => (
    <Button
      key={o.id}
      look={looks[o.kind as keyof typeof looks] ?? "plain"}
      busy={busy}
      disabled={disabled}
      className="h-auto! min-h-8 py-1 text-left [overflow-wrap:anywhere] whitespace-normal! max-sm:min-h-11"
      title={effects[o.kind ?? ""]?.does}
      onClick={() => onChoose(o.id)}
    >
      {labelOf(o)}
    </Button>
  );
  return (
    <>
      <div className="mt-3 flex flex-wrap gap-2">{once.map(button)}</div>
      {options.filter(lasts).map((o) => (
        <div key={o.id} className="mt-2 flex flex-wrap items-center gap-x-3 gap-y-1">
          {button(o)}
          <span className="min-w-0 flex-1 basis-48 text-xs [overflow-wrap:anywhere] text-muted">{reach(o)}</span>
        </div>
      ))}
    </>
  );
}

function reach(o: PermissionOption): string {
  if (!o.covers) return "Also answers later questions. The agent decides which.";
  return o.name?.includes(o.covers)
    ? "Also answers later questions, as the button says."
    : `Covers ${visible(o.covers)}.`;
}
