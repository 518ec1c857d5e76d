import { useQuery } from "@tanstack/react-query";
import type { Context } from "@tapedeck/client";
import { api } from "@/client";
import { CopyButton } from "../conversation/copy-button";
import { dollars, duration, plural, short } from "../format";
import { Plain } from "../json";
import { Button, Dialog, ErrorBox, Loading } from "../ui";
import type { ModelCall } from "./calls";
import { partsOf, roleLabels, textOf } from "./sent";

interface Props {
  id: string;
  call: ModelCall;
  onSeek: (at: number) => void;
  onClose: () => void;
}

/** How many of the newest messages are shown. */
const maxMessages = 500;
const percent = (share: number) => (share > 0 && share < 0.01 ? "< 1 %" : `${Math.round(100 * share)} %`);

/** What a model was sent at one call: how much of what, and each message whole. */
export function SentDialog({ id, call, onSeek, onClose }: Props) {
  const found = useQuery({
    queryKey: ["context", id, call.thread, call.first],
    queryFn: ({ signal }) => api.context(id, { at: call.first, thread: call.thread, limit: maxMessages }, { signal }),
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <Dialog title={`Model call ${call.n}`} onClose={onClose} wide>
      <div className="flex flex-col gap-4 text-[13px]">
        <Figures call={call} />
        {found.isPending && <Loading what="what the model was sent" />}
        {found.isError && <ErrorBox error={found.error} onRetry={() => void found.refetch()} />}
        {found.data && <Sent context={found.data} />}
        <div>
          <Button
            icon="play"
            onClick={() => {
              onClose();
              onSeek(call.first + 1);
            }}
          >
            Go to its answer
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

function Figures({ call }: { call: ModelCall }) {
  const { usage: u } = call;
  const rows: [string, string][] = [
    ["First of the answer after", duration(call.began - call.sent)],
    ["Whole answer after", call.ended === undefined ? "running" : duration(call.ended - call.sent)],
  ];
  if (u) {
    rows.push(["Model", u.model || "unknown"], ["Input tokens", u.input.toLocaleString("en")]);
    if (u.cached > 0) rows.push(["of them from a cache", u.cached.toLocaleString("en")]);
    rows.push(["Output tokens", u.output.toLocaleString("en")]);
    if (u.cost !== undefined) rows.push(["Cost", dollars(u.cost)]);
  }
  return (
    <>
      <dl className="grid grid-cols-[1fr_auto] gap-x-4 gap-y-1 tabular-nums sm:max-w-md">
        {rows.map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-muted">{name}</dt>
            <dd className="text-right">{value}</dd>
          </div>
        ))}
      </dl>
      {!u && <p className="text-muted">The agent has not reported the tokens of this call.</p>}
    </>
  );
}

function Sent({ context }: { context: Context }) {
  const { messages, earlier } = context;
  const parts = partsOf(messages);
  return (
    <section className="flex flex-col gap-2">
      <h3 className="font-semibold">Sent, as the log has it</h3>
      <p className="text-muted">
        {plural(messages.length, "message")}. The shares are of their characters. The log does not have the definitions
        of tools.
        {earlier ? ` ${plural(earlier, "earlier message")} not shown.` : ""}
      </p>
      <ul aria-label="Shares of the context" className="flex flex-col gap-1">
        {parts.map((p) => (
          <li key={p.role} className="grid grid-cols-[8.5rem_1fr_5.5rem] items-center gap-2">
            <span>{roleLabels[p.role] ?? p.role}</span>
            <span aria-hidden="true" className="h-2.5 rounded-sm bg-raised">
              <span
                className="block h-full rounded-sm bg-accent forced-colors:bg-[CanvasText]"
                style={{ width: `${100 * p.share}%` }}
              />
            </span>
            <span className="text-right text-muted tabular-nums">
              {percent(p.share)} · {short(p.chars)}
            </span>
          </li>
        ))}
      </ul>
      <ol aria-label="Messages" className="flex flex-col gap-1">
        {messages.map((m, i) => {
          const text = textOf(m);
          const name = roleLabels[m.role] ?? m.role;
          return (
            // biome-ignore lint/suspicious/noArrayIndexKey: messages have no id, and never change
            <li key={i}>
              <details className="rounded-md border border-line">
                <summary className="flex items-center gap-2 px-2 py-1 pointer-coarse:min-h-11">
                  <span className="shrink-0 font-medium">{name}</span>
                  <span className="min-w-0 flex-1 truncate text-muted">{text.slice(0, 200)}</span>
                  <span className="shrink-0 text-xs text-muted tabular-nums">{short(text.length)}</span>
                </summary>
                <div className="border-t border-line p-2">
                  <CopyButton text={text} label={`Copy message ${i + 1}`} />
                  <Plain text={text} label={`Message ${i + 1}: ${name}`} />
                </div>
              </details>
            </li>
          );
        })}
      </ol>
    </section>
  );
}
