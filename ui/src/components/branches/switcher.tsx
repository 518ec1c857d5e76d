import { DropdownMenu } from "radix-ui";
import { createContext, useContext } from "react";
import { brief } from "../format";
import { Icon } from "../icons";
import type { Placed, Way } from "./partings";

interface Parting {
  /** Where the conversation on the page parts from others, by the keys of its rows. */
  placed: ReadonlyMap<string, Placed>;
  onGo: (to: Way) => void;
}

/** There are none where nobody says so: a recording knows of no other session. */
export const Partings = createContext<Parting>({ placed: new Map(), onGo: () => undefined });

/** Goes to the other ways that a conversation went on from a row, if it is where they part. */
export function Switcher({ row, below }: { row: string; below?: boolean }) {
  const { placed: all, onGo } = useContext(Partings);
  const placed = all.get(row);
  if (!placed || placed.ways.length < 2 || placed.below !== (below ?? false)) return null;
  return <Ways placed={placed} onGo={onGo} />;
}

function Ways({ placed: { ways, active }, onGo }: { placed: Placed; onGo: (to: Way) => void }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: no set of fields; and as landmarks there would be too many
    <div
      role="group"
      aria-label="Branches from here"
      className="relative my-1 ml-16 flex items-center text-xs text-muted"
    >
      <Icon name="fork" className="mr-1 size-3.5" />
      <Step label="Previous branch" icon="back" to={ways[active - 1]} onGo={onGo} />
      {/* not modal: what streams goes on below it */}
      <DropdownMenu.Root modal={false}>
        <DropdownMenu.Trigger
          aria-label={`Branch ${active + 1} of ${ways.length}: ${ways[active]?.name}`}
          className="rounded px-1 py-0.5 tabular-nums hover:bg-raised hover:text-text"
        >
          {active + 1}/{ways.length}
        </DropdownMenu.Trigger>
        <DropdownMenu.Portal>
          <Menu ways={ways} active={active} onGo={onGo} />
        </DropdownMenu.Portal>
      </DropdownMenu.Root>
      <Step label="Next branch" icon="forward" to={ways[active + 1]} onGo={onGo} />
    </div>
  );
}

function Step(p: { label: string; icon: "back" | "forward"; to?: Way; onGo: (w: Way) => void }) {
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

function Menu({ ways, active, onGo }: { ways: Way[]; active: number; onGo: (w: Way) => void }) {
  return (
    <DropdownMenu.Content
      aria-label="Branches"
      aria-labelledby={undefined} // else it is called as the button is
      onKeyDown={(e) => e.stopPropagation()} // letters look for a name here
      align="start"
      collisionPadding={8}
      className="z-50 max-h-64 w-80 overflow-y-auto rounded-md border border-line bg-panel py-1 text-[13px] text-text shadow-lg"
    >
      <DropdownMenu.RadioGroup
        value={ways[active]?.key}
        onValueChange={(key) => {
          const to = ways.find((w) => w.key === key);
          if (to) onGo(to);
        }}
      >
        {ways.map((w) => (
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
              <span className={`block truncate ${w.taken ? "text-muted line-through" : "font-medium"}`}>{w.name}</span>
              {w.says && <span className="block truncate text-xs text-muted">{brief(w.says, 60)}</span>}
            </span>
          </DropdownMenu.RadioItem>
        ))}
      </DropdownMenu.RadioGroup>
    </DropdownMenu.Content>
  );
}
