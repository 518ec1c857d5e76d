import { plural } from "../format";
import { Icon } from "../icons";
import { type Count, type ElementState, looks } from "./states";

export function StateChip({ state }: { state: ElementState }) {
  const { label, mark, className } = looks[state];
  return (
    <span
      className={`inline-flex items-center gap-1 rounded-full px-2 py-px text-xs font-medium whitespace-nowrap ${className}`}
    >
      <span aria-hidden="true" className={state === "active" ? "animate-pulse" : ""}>
        {mark}
      </span>
      {label}
    </span>
  );
}

/** How much an agent has said and done, as words. */
export function countText({ messages, calls, asks }: Count): string {
  const parts = [plural(messages, "message"), plural(calls, "tool call")];
  if (asks > 0) parts.push(plural(asks, "question"));
  return parts.join(", ");
}

interface BubbleProps {
  title: string;
  state: ElementState;
  /** What its agent has said and done; absent for a task of a person. */
  count?: Count;
  selected: boolean;
  onOpen: () => void;
}

const bubbles: Record<ElementState, string> = {
  pending: "border-line text-muted",
  active: "border-run text-run",
  waiting: "border-warn text-warn",
  completed: "border-ok text-ok",
  failed: "border-bad text-bad",
  interrupted: "border-warn text-warn",
  cancelled: "border-strong text-text",
  reverted: "border-dashed border-strong text-muted",
};

/** The bubble at a task. It opens what its agent has said and done, or the question to a person and its answer. */
export function Bubble({ title, state, count, selected, onOpen }: BubbleProps) {
  const asks = count ? count.asks > 0 : state === "waiting";
  const what = count ? countText(count) : "question";
  const label = `${title}, ${what}, ${asks ? "asks for an answer" : looks[state].label.toLowerCase()}`;
  return (
    <button
      type="button"
      aria-label={label}
      aria-pressed={selected}
      title={label}
      onClick={(e) => {
        e.stopPropagation();
        onOpen();
      }}
      className={`flex h-[22px] items-center gap-1 rounded-full border bg-panel px-1.5 text-[11px] leading-none font-semibold whitespace-nowrap tabular-nums shadow-sm hover:bg-raised ${asks ? "border-warn bg-warn-soft! text-warn" : bubbles[state]}`}
    >
      <Icon name={count && !asks ? "chat" : state === "completed" ? "check" : "help"} className="size-3.5" />
      {count && count.messages + count.calls}
      {state === "active" && !asks && (
        <span className="size-1.5 animate-pulse rounded-full bg-run" aria-hidden="true" />
      )}
    </button>
  );
}
