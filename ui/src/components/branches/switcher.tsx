import { createContext, type KeyboardEvent, useContext, useEffect, useRef, useState } from "react";
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
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const go = (to: Way | undefined) => {
    setOpen(false);
    if (to) onGo(to);
  };
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: no set of fields; and as landmarks there would be too many
    <div
      role="group"
      aria-label="Branches from here"
      className="relative my-1 ml-16 flex items-center text-xs text-muted"
    >
      <Icon name="fork" className="mr-1 size-3.5" />
      <Step label="Previous branch" icon="back" to={ways[active - 1]} onGo={go} />
      <button
        ref={button}
        type="button"
        aria-haspopup="menu"
        aria-expanded={open}
        aria-label={`Branch ${active + 1} of ${ways.length}: ${ways[active]?.name}`}
        onClick={() => setOpen(!open)}
        className="rounded px-1 py-0.5 tabular-nums hover:bg-raised hover:text-text"
      >
        {active + 1}/{ways.length}
      </button>
      <Step label="Next branch" icon="forward" to={ways[active + 1]} onGo={go} />
      {open && <Menu ways={ways} active={active} under={button} onGo={go} onClose={close} />}
    </div>
  );
}

function Step(p: { label: string; icon: "back" | "forward"; to?: Way; onGo: (w?: Way) => void }) {
  return (
    <button
      type="button"
      aria-label={p.label}
      title={p.to?.name}
      disabled={!p.to}
      onClick={() => p.onGo(p.to)}
      className="rounded p-0.5 hover:bg-raised hover:text-text disabled:opacity-40"
    >
      <Icon name={p.icon} className="size-3.5" />
    </button>
  );
}

interface MenuProps {
  ways: Way[];
  active: number;
  under: React.RefObject<HTMLElement | null>;
  onGo: (w: Way) => void;
  onClose: () => void;
}

/** In the browser's top layer: the rows of the list below would lie over it. */
function Menu({ ways, active, under, onGo, onClose }: MenuProps) {
  const ref = useRef<HTMLDivElement>(null);
  const items = () => [...(ref.current?.querySelectorAll<HTMLElement>("[role=menuitemradio]") ?? [])];
  // biome-ignore lint/correctness/useExhaustiveDependencies: when it opens only
  useEffect(() => {
    const el = ref.current;
    const box = under.current?.getBoundingClientRect();
    if (!el || !box) return;
    el.showPopover?.();
    el.style.left = `${box.left}px`;
    el.style.top = `${Math.max(8, Math.min(box.bottom, innerHeight - el.offsetHeight - 8))}px`;
    items()[active]?.focus();
    const away = (e: Event) => {
      if (!(e.target instanceof Node) || !(el.contains(e.target) || under.current?.contains(e.target))) onClose();
    };
    document.addEventListener("pointerdown", away);
    document.addEventListener("wheel", away, { passive: true }); // not scroll: what streams scrolls, too
    return () => {
      document.removeEventListener("pointerdown", away);
      document.removeEventListener("wheel", away);
    };
  }, []);
  const onKeyDown = (e: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (e.key === "Escape" || e.key === "Tab") onClose();
    else if (by) {
      const all = items();
      const i = all.indexOf(document.activeElement as HTMLElement);
      all[(i + by + all.length) % all.length]?.focus();
    } else return;
    e.preventDefault();
  };
  return (
    <div
      ref={ref}
      role="menu"
      popover="manual"
      tabIndex={-1}
      aria-label="Branches"
      onKeyDown={onKeyDown}
      className="fixed inset-auto m-0 max-h-64 w-80 overflow-y-auto rounded-md border border-line bg-panel py-1 text-[13px] text-text shadow-lg"
    >
      {ways.map((w, i) => (
        <button
          key={w.key}
          type="button"
          role="menuitemradio"
          aria-checked={i === active}
          tabIndex={-1}
          onClick={() => (i === active ? onClose() : onGo(w))}
          className="flex w-full items-baseline gap-2 px-3 py-1 text-left hover:bg-raised focus:bg-raised"
        >
          <span aria-hidden="true" className="w-3 text-accent">
            {i === active ? "✓" : ""}
          </span>
          <span className="min-w-0 flex-1">
            <span className={`block truncate ${w.taken ? "text-muted line-through" : "font-medium"}`}>{w.name}</span>
            {w.says && <span className="block truncate text-xs text-muted">{brief(w.says, 60)}</span>}
          </span>
        </button>
      ))}
    </div>
  );
}
