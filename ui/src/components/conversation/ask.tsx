import { useMutation } from "@tanstack/react-query";
import { type JsonObject, type Permission, type PermissionOption, TapedeckError } from "@tapedeck/client";
import { isObject } from "@tapedeck/client/fold";
import { type KeyboardEvent, useMemo } from "react";
import { keysAreOn } from "@/hooks/keys";
import { FormAnswer, FormQuestion } from "../form/question";
import { fieldsOf } from "../form/values";
import { Button, ErrorBox } from "../ui";
import { actionOf, visible } from "./action";
import { AskAction } from "./ask-action";

interface Props {
  permission: Permission;
  /** Absent in a recording: no server can receive an answer. */
  onAnswer?: (p: Permission, option?: string, input?: JsonObject) => Promise<unknown>;
}

/** A permission request of the agent. */
export function Ask({ permission: p, onAnswer }: Props) {
  const answer = useMutation({
    mutationFn: async ({ option, input }: { option: string; input?: JsonObject }) =>
      input ? onAnswer?.(p, option, input) : onAnswer?.(p, option),
  });
  const action = useMemo(() => actionOf(p.action), [p.action]);
  const fields = useMemo(() => fieldsOf(p.form), [p.form]);
  const isOpen = p.status === "open";
  const title = p.message && p.message !== action?.command ? p.message : titleOf(action?.tool);
  const onKeyDown = (e: KeyboardEvent) => {
    const option = isOpen && fields.length === 0 ? sorted(p.options)[Number(e.key) - 1] : undefined;
    if (!option || isLasting(option) || !onAnswer || answer.isPending || !keysAreOn()) return;
    if (e.ctrlKey || e.altKey || e.metaKey) return;
    e.preventDefault(); // the page would move the playhead
    answer.mutate({ option: option.id });
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: its keys and focus are those of a part of a row
    <div
      role="article"
      aria-label={isOpen ? "Question that waits for you" : "Question"}
      tabIndex={-1}
      data-ask={p.offset}
      onKeyDown={onKeyDown}
      className={`group/ask rounded-md border px-3 py-2 text-[13px] ${isOpen ? "border-warn/50 bg-warn-soft" : "border-line bg-panel"}`}
    >
      <p className="max-h-40 overflow-auto font-medium [overflow-wrap:anywhere] whitespace-pre-wrap">
        {visible(title)}
      </p>
      {!isOpen && <Answered permission={p} />}
      {action && isOpen && <AskAction action={action} message={p.message} />}
      {action && !isOpen && (
        <details className="mt-1">
          <summary className="cursor-pointer text-muted">Details</summary>
          <AskAction action={action} message={p.message} />
        </details>
      )}
      {!isOpen && isObject(p.input) && <FormAnswer fields={fields} input={p.input} />}
      {isOpen && fields.length > 0 && (
        <FormQuestion
          fields={fields}
          options={p.options}
          busy={answer.isPending}
          disabled={!onAnswer}
          onAnswer={(option, input) => answer.mutate({ option, input })}
        />
      )}
      {isOpen && fields.length === 0 && (
        <Options
          options={p.options}
          busy={answer.isPending}
          disabled={!onAnswer}
          onChoose={(option) => answer.mutate({ option })}
        />
      )}
      {isOpen && answer.isError && !isOver(answer.error) && (
        <div className="mt-2">
          <ErrorBox error={answer.error} />
        </div>
      )}
      {answer.isError && isOver(answer.error) && (
        <p role="status" className="mt-2 text-muted">
          This question no longer waits: it was answered, or its run has ended. Your answer was not used.
        </p>
      )}
    </div>
  );
}

/** Somebody else answered before, or the run has ended. */
const isOver = (error: unknown) => error instanceof TapedeckError && error.kind === "conflict";

function titleOf(tool: string | undefined): string {
  return tool ? `May the agent use ${tool}?` : "The agent asks for permission";
}

const verdicts: Record<string, [mark: string, className: string]> = {
  allow: ["✓", "text-ok"],
  reject: ["✕", "text-bad"],
};

function Answered({ permission: p }: { permission: Permission }) {
  if (!p.option) return <p className="text-muted">No answer</p>;
  const chosen = p.options.find((o) => o.id === p.option);
  // A form is submitted: nothing is allowed with it.
  const label = chosen && !p.form ? labelOf(chosen) : chosen?.name || p.option;
  const [mark, colour] = verdicts[chosen?.kind?.split("_")[0] ?? ""] ?? [];
  return (
    <p className="[overflow-wrap:anywhere] text-muted">
      {mark && (
        <span aria-hidden="true" className={`mr-1.5 font-medium ${colour}`}>
          {mark}
        </span>
      )}
      {visible(`Answered: ${label}${p.answered_by ? ` (${p.answered_by})` : ""}`)}
    </p>
  );
}

/** The options in the order of their keys: those that answer once come first, and only they have a key. */
function sorted(options: PermissionOption[]): PermissionOption[] {
  const rank = (o: PermissionOption) =>
    isLasting(o) ? order.length + 1 : (order.indexOf(o.kind ?? "") + order.length + 1) % (order.length + 1);
  return options.toSorted((a, b) => rank(a) - rank(b));
}

const isLasting = (o: PermissionOption) => o.kind?.endsWith("_always") ?? false;
const looks = { allow_once: "primary", reject_once: "danger" } as const;
const order = ["allow_once", "reject_once"];

/** The effect of each kind of option, and the names that already say exactly that. */
const effects: Record<string, { does: string; names: RegExp }> = {
  allow_once: { does: "allows once", names: /^allow( once)?$/i },
  allow_always: { does: "allows always", names: /^(allow always|always allow)$/i },
  reject_once: { does: "rejects once", names: /^reject( once)?$/i },
  reject_always: { does: "rejects always", names: /^(reject always|always reject)$/i },
};

/** The agent chooses the name of an option. If the name does not state the effect, the effect is added. */
function labelOf(o: PermissionOption): string {
  const name = visible(o.name || o.id);
  const effect = effects[o.kind ?? ""];
  return !effect || effect.names.test(name) ? name : `${name} (${effect.does})`;
}

/** Options that answer once come first. Options that last say what else they cover. */
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
  const button = (o: PermissionOption, i: number) => (
    <Button
      key={o.id}
      look={isLasting(o) ? "ghost" : (looks[o.kind as keyof typeof looks] ?? "plain")}
      busy={busy}
      disabled={disabled}
      className="h-auto! min-h-8 py-1 text-left [overflow-wrap:anywhere] whitespace-normal! max-sm:min-h-11"
      title={effects[o.kind ?? ""]?.does}
      onClick={() => onChoose(o.id)}
    >
      {labelOf(o)}
      {!isLasting(o) && !disabled && (
        <span
          aria-hidden="true"
          data-key={i + 1}
          className="hidden font-mono text-[11px] opacity-80 group-focus-within/ask:inline after:content-[attr(data-key)]"
        />
      )}
    </Button>
  );
  return (
    <>
      <div className="mt-3 flex flex-wrap gap-2">
        {sorted(options)
          .filter((o) => !isLasting(o))
          .map(button)}
      </div>
      {options.filter(isLasting).map((o, i) => (
        <div key={o.id} className="mt-2 flex flex-wrap items-center gap-x-3 gap-y-1">
          {button(o, i)}
          <span className="min-w-0 flex-1 basis-48 text-xs [overflow-wrap:anywhere] text-muted">{coverageText(o)}</span>
        </div>
      ))}
    </>
  );
}

function coverageText(o: PermissionOption): string {
  if (!o.covers) return "Also answers later requests. The agent decides which ones.";
  return o.name?.includes(o.covers)
    ? "Also answers later requests, as the button says."
    : `Covers ${visible(o.covers)}.`;
}
