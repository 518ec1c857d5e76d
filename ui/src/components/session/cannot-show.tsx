import { ErrorBox } from "../ui";

/** The page of a session that cannot be shown, with the reason. */
export function CannotShow({ error }: { error: unknown }) {
  return (
    <div className="mx-auto max-w-2xl p-8">
      <h1 className="mb-3 text-base font-semibold">This session cannot be shown</h1>
      <ErrorBox error={error} onRetry={() => location.reload()} />
      <p className="mt-4 text-center text-[13px]">
        <a className="text-accent underline" href="/">
          Back to sessions
        </a>
      </p>
    </div>
  );
}
