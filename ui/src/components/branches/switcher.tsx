import { DropdownMenu } from "radix-ui";
import { createContext, useContext } from "react";
import { brief } from "../format";
import { Icon } from "../icons";
import type { Alternative, PlacedBranchPoint } from "./branch-points";

interface BranchPointsValue {
  /** The branch points of the conversation on the page, by the keys of its rows. */
  placed: ReadonlyMap<string, PlacedBranchPoint>;
  onGo: (to: Alternative) => void;
}

/** Empty by default: a recording contains no other session. */
export const BranchPoints = createContext<BranchPointsValue>({ placed: new Map(), onGo: () => undefined });

/** Switches to the other branches at a row, if the row has a branch point. */
export function Switcher({ row, below }: { row: string; below?: boolean }) {
  const { placed: all, onGo } = useContext(BranchPoints);
  const placed = all.get(row);
  if (!placed || placed.alternatives.length < 2 || placed.below !== (below ?? false)) return null;
  return <Alternatives placed={placed} onGo={onGo} />;
}

function Alternatives({
  placed: { alternatives, active },
  onGo,
}: {
  placed: PlacedBranchPoint;
  onGo: (to: Alternative) => void;
}) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for form fields; a section would add too many landmarks
    <div
      role="group"
      aria-label="Branches from here"
      className="relative my-1 ml-16 flex items-center text-xs text-muted"
    >
      <Icon name="fork" className="mr-1 size-3.5" />
      <Step label="Previous branch" icon="back" to={alternatives[active - 1]} onGo={onGo} />
      {/* not modal: the page keeps streaming behind it */}
      <DropdownMenu.Root modal={false}>
        <DropdownMenu.Trigger
          aria-label={`Branch ${active + 1} of ${alternatives.length}: ${alternatives[active]?.name}`}
          className="rounded px-1 py-0.5 tabular-nums hover:bg-raised hover:text-text"
        >
          {active + 1}/{alternatives.length}
        </DropdownMenu.Trigger>
        <DropdownMenu.Portal>
          <Menu alternatives={alternatives} active={active} onGo={onGo} />
        </DropdownMenu.Portal>
      </DropdownMenu.Root>
      <Step label="Next branch" icon="forward" to={alternatives[active + 1]} onGo={onGo} />
    </div>
  );
}

function Step(p: { label: string; icon: "back" | "forward"; to?: Alternative; onGo: (w: Alternative) => void }) {
  return (
    <button
      type="button"
      aria-label={p.label}
      title={p.to?.name}
      disabled={!p.to}
      onClick={() => p.to && p.onGo(p.to)}
      className="rounded p-0.5 hover:bg-raised hover:text-text disabled:opacity-40"
    >
      <Icon name={p.icon} className="size-3.5" />
    </button>
  );
}

function Menu({
  alternatives,
  active,
  onGo,
}: {
  alternatives: Alternative[];
  active: number;
  onGo: (w: Alternative) => void;
}) {
  return (
    <DropdownMenu.Content
      aria-label="Branches"
      aria-labelledby={undefined} // otherwise it is named after the button
      onKeyDown={(e) => e.stopPropagation()} // letters search the menu
      align="start"
      collisionPadding={8}
      className="z-50 max-h-64 w-80 overflow-y-auto rounded-md border border-line bg-panel py-1 text-[13px] text-text shadow-lg"
    >
      <DropdownMenu.RadioGroup
        value={alternatives[active]?.key}
        onValueChange={(key) => {
          const to = alternatives.find((w) => w.key === key);
          if (to) onGo(to);
        }}
      >
        {alternatives.map((w) => (
          <DropdownMenu.RadioItem
            key={w.key}
            value={w.key}
            textValue={w.name}
            className="flex w-full cursor-default items-baseline gap-2 px-3 py-1 text-left outline-none data-highlighted:bg-raised"
          >
            <span aria-hidden="true" className="w-3 text-accent">
              <DropdownMenu.ItemIndicator>✓</DropdownMenu.ItemIndicator>
            </span>
            <span className="min-w-0 flex-1">
              <span className={`block truncate ${w.reverted ? "text-muted line-through" : "font-medium"}`}>
                {w.name}
              </span>
              {w.nextMessage && <span className="block truncate text-xs text-muted">{brief(w.nextMessage, 60)}</span>}
            </span>
          </DropdownMenu.RadioItem>
        ))}
      </DropdownMenu.RadioGroup>
    </DropdownMenu.Content>
  );
}
