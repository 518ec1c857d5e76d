/** The label and look of each status. The mark makes it clear without colour. */
const kinds: Record<string, { label: string; mark: string; className: string }> = {
  idle: { label: "Idle", mark: "○", className: "bg-raised text-muted" },
  pending: { label: "Pending", mark: "◌", className: "bg-raised text-muted" },
  running: { label: "Running", mark: "●", className: "bg-run-soft text-run" },
  waiting: { label: "Waiting for you", mark: "?", className: "bg-warn-soft text-warn" },
  complete: { label: "Complete", mark: "✓", className: "bg-ok-soft text-ok" },
  failed: { label: "Failed", mark: "✕", className: "bg-bad-soft text-bad" },
  cancelled: { label: "Cancelled", mark: "■", className: "bg-raised text-text" },
  interrupted: { label: "Interrupted", mark: "‖", className: "bg-warn-soft text-warn" },
};

export const statuses = Object.keys(kinds);

/** The filters of the list: each status, and "closed" for closed sessions of any status. */
export const listStatuses = [...statuses, "closed"];

export function statusLabel(status: string): string {
  if (status === "closed") return "Closed";
  return kinds[status]?.label ?? status;
}

export function markOf(status: string): string {
  return kinds[status]?.mark ?? "•";
}

/** The colour of a status as text on a plain ground. */
export function statusColour(status: string): string {
  return (kinds[status]?.className ?? "text-muted").replace(/^bg-\S+ /, "");
}

export function StatusChip({ status }: { status: string }) {
  const k = kinds[status] ?? { label: status, mark: "•", className: "bg-raised text-muted" };
  return (
    <span
      className={`inline-flex items-center gap-1 rounded-full px-2 py-px text-xs font-medium whitespace-nowrap ${k.className}`}
    >
      <span aria-hidden="true" className={status === "running" ? "animate-pulse" : ""}>
        {k.mark}
      </span>
      {k.label}
    </span>
  );
}
