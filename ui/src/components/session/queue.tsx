import { useMutation } from "@tanstack/react-query";
import type { Input } from "@tapedeck/client";
import { api } from "@/client";
import { ErrorBox, IconButton } from "../ui";

/** What becomes of a message for an agent that is running. */
export type When = "queue" | "steer" | "interrupt";

const labels: Record<When, string> = {
  queue: "Queue: run it when the agent is done",
  steer: "Steer: give it to the agent now, if it can take it",
  interrupt: "Interrupt: stop the agent and run it now",
};
const names: Record<When, string> = { queue: "Queue", steer: "Steer", interrupt: "Interrupt" };

/** The switch between the things that can become of a message. */
export function WhenSwitch({ value, onChange }: { value: When; onChange: (w: When) => void }) {
  return (
    <fieldset className="flex h-8 overflow-hidden rounded-md border border-line text-[13px]">
      <legend className="sr-only">What becomes of the message</legend>
      {(Object.keys(names) as When[]).map((w) => (
        <label
          key={w}
          title={labels[w]}
          className="flex cursor-pointer items-center px-2 text-muted has-checked:bg-raised has-checked:text-text has-focus-visible:outline-2"
        >
          <input
            type="radio"
            name="when"
            className="sr-only"
            checked={value === w}
            onChange={() => onChange(w)}
            aria-label={labels[w]}
          />
          {names[w]}
        </label>
      ))}
    </fieldset>
  );
}

/** The messages that wait in a thread, in the order in which they will run. */
export function Queue({ id, thread, inputs }: { id: string; thread: string; inputs: readonly Input[] }) {
  const withdraw = useMutation({ mutationFn: (input: string) => api.withdraw(id, input) });
  const move = useMutation({
    mutationFn: (to: { input: string; before?: string }) => api.move(id, to.input, to.before),
  });
  const waiting = inputs.filter((i) => i.status === "waiting" && i.thread === thread);
  const waits = (id?: string) => waiting.some((i) => i.id === id);
  const failed =
    withdraw.isError && waits(withdraw.variables)
      ? withdraw
      : move.isError && waits(move.variables.input)
        ? move
        : undefined;
  if (waiting.length === 0) return null;
  return (
    <div className="mb-2">
      {failed && <ErrorBox error={failed.error} onClose={() => failed.reset()} />}
      <ol aria-label="Messages that wait" className="max-h-40 overflow-y-auto">
        {waiting.map((i, n) => (
          <li key={i.id} className="flex items-center gap-2 text-[13px]">
            <div className="flex min-w-0 flex-1 gap-x-2 max-sm:flex-wrap max-sm:py-1">
              <span className="shrink-0 text-muted sm:w-16">{i.when === "steer" ? "Steers" : "Queued"}</span>
              <span
                className="line-clamp-2 min-w-0 flex-1 [overflow-wrap:anywhere] max-sm:order-last max-sm:basis-full sm:line-clamp-1"
                title={i.text}
              >
                {i.text}
              </span>
              {i.outside && (
                <span className="min-w-0 truncate text-muted sm:max-w-60">
                  until {i.agent || "its program"} takes it
                </span>
              )}
            </div>
            <IconButton
              label="Run earlier"
              icon="up"
              disabledReason={n === 0 ? "it is the first" : undefined}
              onClick={() => n > 0 && move.mutate({ input: i.id, before: waiting[n - 1]!.id })}
            />
            <IconButton label="Withdraw" icon="close" onClick={() => withdraw.mutate(i.id)} />
          </li>
        ))}
      </ol>
    </div>
  );
}
