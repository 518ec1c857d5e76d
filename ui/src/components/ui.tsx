import { type ComponentProps, type ReactNode, useEffect, useRef } from "react";
import { capital } from "./format";
import { Icon, type IconName } from "./icons";

const looks = {
  plain: "border border-line bg-panel hover:bg-raised",
  primary: "bg-accent text-on-accent hover:brightness-110",
  ghost: "text-muted hover:bg-raised hover:text-text",
  danger: "border border-bad/50 text-bad hover:bg-bad-soft",
};

type ButtonProps = ComponentProps<"button"> & { look?: keyof typeof looks; icon?: IconName; busy?: boolean };

export function Button({ look = "plain", icon, busy, children, className = "", disabled, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      disabled={disabled || busy}
      aria-busy={busy || undefined}
      className={`inline-flex h-8 items-center gap-1.5 rounded-md px-2.5 pointer-coarse:min-h-11 pointer-coarse:min-w-11 text-[13px] font-medium whitespace-nowrap disabled:cursor-not-allowed disabled:opacity-50 ${looks[look]} ${className}`}
      {...rest}
    >
      {busy ? <Spinner /> : icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

/** A button with only an icon. Its label is its accessible name and its tooltip. */
export function IconButton({
  label,
  keys,
  icon,
  disabledReason,
  className = "",
  ...rest
}: ComponentProps<"button"> & {
  label: string;
  keys?: string;
  icon: IconName;
  /** Why the button is disabled; undefined if it is not. */
  disabledReason?: string;
}) {
  const name = keys ? `${label} (${keys})` : label;
  return (
    <button
      type="button"
      aria-label={label}
      aria-disabled={disabledReason !== undefined || undefined}
      title={disabledReason === undefined ? name : `${label}: ${disabledReason}`}
      className={`inline-flex size-8 items-center justify-center rounded-md text-muted pointer-coarse:size-11 hover:bg-raised hover:text-text disabled:cursor-not-allowed disabled:opacity-40 aria-disabled:cursor-not-allowed aria-disabled:opacity-40 ${className}`}
      {...rest}
    >
      <Icon name={icon} />
    </button>
  );
}

export function Spinner() {
  return (
    <span
      aria-hidden="true"
      className="inline-block size-3.5 animate-spin rounded-full border-2 border-current border-t-transparent"
    />
  );
}

export function Kbd({ children }: { children: ReactNode }) {
  return <kbd className="rounded border border-line bg-raised px-1 font-mono text-[11px] text-muted">{children}</kbd>;
}

/** An empty state: a title and an explanation. */
export function Notice({
  title,
  children,
  role = "status",
}: {
  title: string;
  children?: ReactNode;
  role?: "status" | "alert";
}) {
  return (
    <div role={role} className="mx-auto flex max-w-md flex-col items-center gap-2 px-6 py-16 text-center">
      <p className="text-base font-semibold">{title}</p>
      <div className="text-muted">{children}</div>
    </div>
  );
}

export function Loading({ what }: { what: string }) {
  return (
    <div role="status" className="flex items-center justify-center gap-2 p-10 text-muted">
      <Spinner /> Loading {what}…
    </div>
  );
}

/** An error with the message and the hint of the server. */
export function ErrorBox({ error, onRetry, onClose }: { error: unknown; onRetry?: () => void; onClose?: () => void }) {
  const { message, hint } = errorText(error);
  return (
    <div
      role="alert"
      className="flex items-center gap-3 rounded-md border border-bad/60 bg-bad-soft px-3 py-2 text-[13px]"
    >
      <div className="min-w-0 flex-1 [overflow-wrap:anywhere]">
        <p className="font-medium text-bad">{message}</p>
        {hint && <p className="text-muted">{hint}</p>}
      </div>
      {onRetry && <Button onClick={onRetry}>Try again</Button>}
      {onClose && <IconButton label="Dismiss" icon="close" onClick={onClose} />}
    </div>
  );
}

export function errorText(error: unknown): { message: string; hint?: string } {
  const e = error as { message?: string; hint?: string } | null;
  const message = e?.message || "Something went wrong";
  return { message: capital(message), hint: e?.hint };
}

/** The browser's own dialog: it traps the focus, and returns it when closed. */
export function Dialog({
  title,
  onClose,
  children,
  wide,
}: {
  title: string;
  onClose: () => void;
  children: ReactNode;
  /** "all" has space for three columns. */
  wide?: boolean | "all";
}) {
  const ref = useRef<HTMLDialogElement>(null);
  const content = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const d = ref.current;
    if (d && !d.open) d.showModal();
    // The browser focuses the first button, which closes the dialog: Enter must not do that.
    const first = "[data-first], input:not([type=checkbox], [type=radio]), textarea, select";
    (content.current?.querySelector<HTMLElement>(first) ?? content.current)?.focus();
    return () => d?.close();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it, too
    <dialog
      ref={ref}
      aria-label={title}
      onCancel={onClose}
      onClick={(e) => e.target === ref.current && onClose()}
      className={`w-full rounded-lg border border-line bg-panel p-0 shadow-xl max-sm:mx-0 max-sm:mb-0 max-sm:max-h-[92dvh] max-sm:max-w-none max-sm:rounded-b-none ${wide === "all" ? "max-w-6xl" : wide ? "max-w-3xl" : "max-w-lg"}`}
    >
      <div className="flex items-center justify-between border-b border-line py-2 pr-2 pl-4">
        <h2 className="font-semibold">{title}</h2>
        <IconButton label="Close" icon="close" onClick={onClose} />
      </div>
      <div ref={content} tabIndex={-1} className="p-4 outline-none">
        {children}
      </div>
    </dialog>
  );
}

export const field =
  "h-8 rounded-md border border-field bg-panel px-2 text-[13px] hover:border-text disabled:opacity-50 pointer-coarse:min-h-11";
