import type { JsonObject } from "@tapedeck/client";
import type { WorkflowView } from "@tapedeck/client/fold";
import { visible } from "../conversation/action";
import { Icon } from "../icons";
import { Plain, pretty } from "../json";
import { type Wait, waitText } from "./states";

interface Props {
  workflow?: WorkflowView;
  waits: Wait[];
  titleOf: (element: string) => string;
  onSelect: (element: string) => void;
}

/** Where the workflow is, before an element is chosen. */
export function Overview({ workflow: w, waits, titleOf, onSelect }: Props) {
  return (
    <div className="flex flex-col gap-3 overflow-y-auto p-3 text-[13px]">
      {w?.message && (
        <div role="alert" className="rounded-md border border-bad/40 bg-bad-soft px-3 py-2 [overflow-wrap:anywhere]">
          <p className="font-medium text-bad">{visible(w.message)}</p>
          {w.element && (
            <button type="button" className="text-accent underline" onClick={() => onSelect(w.element ?? "")}>
              {visible(titleOf(w.element))}
            </button>
          )}
        </div>
      )}
      {waits.map((wait) => (
        <button
          key={`${wait.activation?.id} ${wait.element} ${wait.offset}`}
          type="button"
          onClick={() => onSelect(wait.activation?.element ?? wait.element)}
          className="flex items-center gap-2 rounded-md border border-warn/50 bg-warn-soft px-3 py-2 text-left max-sm:min-h-11"
        >
          <Icon name="help" className="text-warn" />
          <span className="min-w-0 flex-1 [overflow-wrap:anywhere]">
            <span className="font-medium">{visible(titleOf(wait.element))}</span> {visible(waitText(wait))}
          </span>
          <Icon name="forward" className="text-muted" />
        </button>
      ))}
      <p className="py-3 text-center text-muted">
        {w ? "Choose a task to see what was said and done in it." : "Nothing has run at this moment."}
      </p>
    </div>
  );
}

/** The variables of the process at the playhead. */
export function Variables({ variables }: { variables: JsonObject }) {
  const names = Object.keys(variables).sort();
  if (names.length === 0) return <p className="p-6 text-center text-[13px] text-muted">No variables at this moment.</p>;
  return (
    <dl className="flex flex-col gap-3 overflow-y-auto p-3 text-[13px]">
      {names.map((name) => {
        const value = variables[name];
        return (
          <div key={name}>
            <dt className="mb-1 font-mono text-xs font-medium [overflow-wrap:anywhere]">{visible(name)}</dt>
            <dd>
              <Plain
                text={typeof value === "string" ? visible(value) : visible(pretty(value))}
                label={`Value of ${visible(name)}`}
                language={typeof value === "object" ? "json" : undefined}
              />
            </dd>
          </div>
        );
      })}
    </dl>
  );
}
