/** A tag of a session. */
export function Tag({ name }: { name: string }) {
  return (
    <span className="ml-1.5 inline-block max-w-40 truncate rounded bg-raised px-1.5 align-bottom text-xs text-muted">
      {name}
    </span>
  );
}
