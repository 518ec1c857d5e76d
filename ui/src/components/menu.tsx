import { type KeyboardEvent, type ReactNode, useEffect, useId, useLayoutEffect, useRef, useState } from "react";
import { Icon, type IconName } from "./icons";

export interface MenuItem {
  label: string;
  icon?: IconName;
  /** Why the item cannot be chosen; absent if it can. */
  disabledReason?: string;
  danger?: boolean;
  /** Whether the item is on; absent for an item that is neither on nor off. */
  checked?: boolean;
  onChoose: () => void;
}

interface Props {
  /** What the menu is about: the name of its button. */
  label: string;
  items: MenuItem[];
  children?: ReactNode;
  className?: string;
  tabIndex?: number;
}

/**
 * A button with a menu. The menu is in the browser's top layer, so no scrolling area cuts
 * it off. Arrow keys move in it, Escape closes it, and the focus goes back to the button.
 */
export function Menu({ label, items, children, className = "", tabIndex }: Props) {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();
  const close = (focus: boolean) => {
    setOpen(false);
    if (focus) button.current?.focus();
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        tabIndex={tabIndex}
        aria-label={label}
        title={label}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        onClick={() => setOpen((o) => !o)}
        onKeyDown={(e) => {
          if (e.key !== "ArrowDown" || open) return;
          e.preventDefault();
          setOpen(true);
        }}
        className={`inline-flex size-8 shrink-0 items-center justify-center rounded-md text-muted hover:bg-raised hover:text-text pointer-coarse:size-11 ${className}`}
      >
        {children ?? <Icon name="more" />}
      </button>
      {open && <List id={id} label={label} items={items} button={button} onClose={close} />}
    </>
  );
}

interface ListProps extends Pick<Props, "label" | "items"> {
  id: string;
  button: React.RefObject<HTMLButtonElement | null>;
  onClose: (focus: boolean) => void;
}

function List({ id, label, items, button, onClose }: ListProps) {
  const list = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const [el, at] = [list.current, button.current?.getBoundingClientRect()];
    if (!el || !at) return;
    el.showPopover?.();
    const [w, h] = [el.offsetWidth, el.offsetHeight];
    el.style.left = `${Math.max(8, Math.min(at.right - w, innerWidth - w - 8))}px`;
    el.style.top = `${at.bottom + h + 4 > innerHeight && at.top - h - 4 > 0 ? at.top - h - 4 : Math.min(at.bottom + 4, Math.max(0, innerHeight - h))}px`;
    el.querySelector<HTMLElement>("[role^=menuitem]")?.focus();
  }, [button]);
  useEffect(() => {
    const away = (e: Event) => {
      const to = e.target as Node;
      if (!list.current?.contains(to) && !button.current?.contains(to)) onClose(false);
    };
    const leave = () => onClose(false);
    document.addEventListener("pointerdown", away);
    addEventListener("resize", leave);
    document.addEventListener("scroll", away, true);
    return () => {
      document.removeEventListener("pointerdown", away);
      removeEventListener("resize", leave);
      document.removeEventListener("scroll", away, true);
    };
  }, [button, onClose]);

  const onKeyDown = (e: KeyboardEvent) => {
    const all = [...(list.current?.querySelectorAll<HTMLElement>("[role^=menuitem]") ?? [])];
    const at = all.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[e.key];
    if (to !== undefined) all.at(to % all.length)?.focus();
    else if (e.key === "Escape") onClose(true);
    else if (e.key === "Tab") return onClose(true);
    else return;
    e.preventDefault();
    e.stopPropagation();
  };
  return (
    <div
      ref={list}
      id={id}
      role="menu"
      aria-label={label}
      popover="manual"
      tabIndex={-1}
      onKeyDown={onKeyDown}
      className="fixed inset-auto m-0 max-h-[80vh] min-w-44 overflow-y-auto rounded-md border border-line bg-panel p-1 text-[13px] text-text shadow-lg"
    >
      {items.map((i) => (
        // biome-ignore lint/a11y/useAriaPropsSupportedByRole: with aria-checked it is a menuitemcheckbox
        <button
          key={i.label}
          type="button"
          role={i.checked === undefined ? "menuitem" : "menuitemcheckbox"}
          aria-checked={i.checked}
          tabIndex={-1}
          aria-disabled={i.disabledReason !== undefined || undefined}
          title={i.disabledReason}
          onClick={(e) => {
            e.stopPropagation();
            if (i.disabledReason !== undefined) return;
            onClose(true);
            i.onChoose();
          }}
          className={`flex min-h-8 w-full items-center gap-2.5 rounded px-2 text-left whitespace-nowrap hover:bg-raised focus:bg-raised focus:outline-none aria-disabled:cursor-not-allowed aria-disabled:opacity-50 pointer-coarse:min-h-11 ${i.danger ? "text-bad" : ""}`}
        >
          {i.icon && <Icon name={i.icon} />}
          {i.checked !== undefined && <Icon name="check" className={i.checked ? "" : "invisible"} />}
          {i.label}
        </button>
      ))}
    </div>
  );
}
