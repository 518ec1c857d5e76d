import type { Permission, Snapshot } from "@tapedeck/client";
import type { WorkflowActivation } from "@tapedeck/client/fold";
import { useEffect, useMemo, useRef, useState } from "react";
import { visible } from "../conversation/action";
import { Ask } from "../conversation/ask";
import { MiniConversation } from "../conversation/mini-conversation";
import type { RowActions } from "../conversation/rows";
import { duration } from "../format";
import { JsonView } from "../json";
import { onlyThread } from "../session/part";
import { joined, useOlder } from "../session/thread-panels";
import { Button, field } from "../ui";
import { StateChip } from "./chip";
import { type DiagramNode, kindOf, titleOf } from "./model";
import { SendMessage } from "./send-message";
import { type Activation, beginOf, type ElementNow, tookMs, type Wait, waitText } from "./states";

export interface PanelContext {
  id: string;
  view: Snapshot;
  jumps: number;
  live: boolean;
  at: number;
  /** The thread of the workflow itself. */
  thread: string;
  onAnswer: RowActions["onAnswer"];
  onSeek: (at: number) => void;
  onPlay: (from: number, to: number | undefined) => void;
  onLive: () => void;
  onThread: (thread: string) => void;
  onRewind: (a: WorkflowActivation) => void;
  /** Changes when the keyboard asks for the form of the question; 0 if it does not. */
  focus: number;
  /** Why nothing can be changed now; undefined if it can. */
  refused?: string;
}

interface Props extends PanelContext {
  node: DiagramNode;
  now?: ElementNow;
  isAgent: boolean;
  agent?: string;
  /** What the process waits for at this element, beside what its own activations wait for. */
  waits: Wait[];
}

/** What one element did: its activations, and of the chosen one the conversation or the question. */
export function TaskPanel({ node, now, isAgent, agent, waits, ...ctx }: Props) {
  const [chosen, choose] = useState<string>();
  const all = now?.activations ?? [];
  // A body of a loop only holds its instances.
  const list = all.filter((x) => x.kind === "reverted" || x.a.count === undefined || all.length === 1);
  const shown = list.find((x) => x.key === chosen) ?? list.findLast((x) => x.kind === "active") ?? list.at(-1);
  const kind = agent ? `${kindOf(node.type)} of ${visible(agent)}` : kindOf(node.type);
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div className="flex flex-col gap-2 border-b border-line px-3 py-2.5 text-[13px]">
        <div className="flex items-start gap-2">
          <h2 className="min-w-0 flex-1 font-semibold [overflow-wrap:anywhere]">{visible(titleOf(node))}</h2>
          <StateChip state={now?.state ?? "pending"} />
        </div>
        <p className="text-xs text-muted [overflow-wrap:anywhere]">
          {kind}
          {shown?.kind === "active" && shown.a.thread && (
            <>
              {" · "}
              <span className="font-mono">{visible(shown.a.thread)}</span>
            </>
          )}
          {shown?.kind === "active" && shown.a.ended_at && ` · ${duration(tookMs(shown.a, ctx.view.runs))}`}
        </p>
        {node.documentation && (
          <p className="max-h-24 overflow-y-auto whitespace-pre-wrap text-muted [overflow-wrap:anywhere]">
            {visible(node.documentation)}
          </p>
        )}
        {list.length > 1 && shown && (
          <label className="flex items-center gap-2 text-xs text-muted">
            Run
            <select
              aria-label="Run"
              className={`${field} min-w-0 flex-1`}
              value={shown.key}
              onChange={(e) => choose(e.target.value)}
            >
              {list.map((x, i) => (
                <option key={x.key} value={x.key}>
                  {nameOf(x, i, list.length)}
                </option>
              ))}
            </select>
          </label>
        )}
        {shown?.kind === "active" && <Actions a={shown.a} {...ctx} />}
      </div>
      {waits.length > 0 && (
        <div className="flex flex-col gap-2 px-3 pt-3 text-[13px]">
          {waits.map((w) => (
            <WaitBox key={w.offset} wait={w} {...ctx} />
          ))}
        </div>
      )}
      {(shown || waits.length === 0) && <Body shown={shown} isAgent={isAgent} {...ctx} />}
    </div>
  );
}

function nameOf(x: Activation, i: number, n: number): string {
  const of = `${i + 1} of ${n}`;
  if (x.kind === "reverted") return `${of}, reverted`;
  const index = x.a.index === undefined ? "" : `, instance ${x.a.index + 1}`;
  return `${of}${index}, ${x.a.status}`;
}

function Actions({ a, view, onPlay, onThread, onRewind, refused }: { a: WorkflowActivation } & PanelContext) {
  return (
    <div className="flex flex-wrap gap-1.5">
      <Button icon="play" className="max-sm:h-11" onClick={() => onPlay(beginOf(a, view.runs).offset, a.end_offset)}>
        Replay this task
      </Button>
      <Button
        icon="rewind"
        className="max-sm:h-11"
        disabled={refused !== undefined}
        title={refused && `Cannot rewind: ${refused}`}
        onClick={() => onRewind(a)}
      >
        Rewind before
      </Button>
      {a.thread && (
        <Button icon="forward" className="max-sm:h-11" onClick={() => onThread(a.thread ?? "")}>
          Open thread
        </Button>
      )}
    </div>
  );
}

function Body({ shown, isAgent, ...ctx }: { shown?: Activation; isAgent: boolean } & PanelContext) {
  if (!shown) return <Note>{isAgent ? "No history. This task has not run." : "This element was not reached."}</Note>;
  if (shown.kind === "reverted")
    return (
      <Note>
        <span className="block">This run was reverted. The log still has it.</span>
        <Button className="mt-3" icon="back" onClick={() => ctx.onSeek(shown.r.until)}>
          Go to the moment before
        </Button>
      </Note>
    );
  const { a } = shown;
  return (
    <>
      <Details a={a} {...ctx} />
      {a.thread ? <ThreadOf a={a} name={a.thread} {...ctx} /> : <Question a={a} {...ctx} />}
    </>
  );
}

function Note({ children }: { children: React.ReactNode }) {
  return <div className="p-6 text-center text-[13px] text-muted">{children}</div>;
}

/** What went wrong, what it waits for, and the variables that only this element sees. */
function Details({ a, ...ctx }: { a: WorkflowActivation } & PanelContext) {
  const waits = (a.waits ?? []).filter((w) => w.for !== "agent" && w.for !== "user");
  const own = Object.keys(a.variables ?? {}).length;
  if (!a.message && waits.length === 0 && own === 0) return null;
  return (
    <div className="flex flex-col gap-2 px-3 pt-3 text-[13px]">
      {a.message && (
        <div role="alert" className="rounded-md border border-bad/40 bg-bad-soft px-3 py-2 [overflow-wrap:anywhere]">
          <p className="font-medium text-bad">{visible(a.message)}</p>
          {a.code && <p className="text-muted">Code: {visible(a.code)}</p>}
        </div>
      )}
      {waits.map((w) => (
        <WaitBox key={`${w.element} ${w.offset}`} wait={w} {...ctx} />
      ))}
      {own > 0 && (
        <details>
          <summary className="text-muted hover:text-text">Variables of this run only</summary>
          <JsonView value={a.variables} label="Variables of this run" />
        </details>
      )}
    </div>
  );
}

/** One wait, and the form of its message. */
function WaitBox({ wait: w, id, thread, refused }: { wait: Wait } & PanelContext) {
  return (
    <div className="rounded-md border border-warn/50 bg-warn-soft px-3 py-2">
      <p className="font-medium [overflow-wrap:anywhere]">It {visible(waitText(w))}.</p>
      {w.for === "message" && (
        <SendMessage id={id} thread={thread} name={w.message ?? ""} correlation={w.correlation} refused={refused} />
      )}
    </div>
  );
}

interface ThreadProps extends PanelContext {
  a: WorkflowActivation;
  name: string;
}

function ThreadOf({ a, name, id, view, jumps, live, onAnswer }: ThreadProps) {
  const older = useOlder(id, name, view, jumps);
  const parts = useMemo(() => joined(older, onlyThread(view, name)), [older, view, name]);
  const working = live && a.status === "active";
  const typing = [...parts.messages, ...parts.tool_calls].some((i) => i.status === "running");
  const asks = parts.permissions?.some((p) => p.status === "open");
  const nothing = parts.messages.length + parts.tool_calls.length + (parts.permissions?.length ?? 0) === 0;
  if (nothing && !working) return <Note>Nothing was said yet at this moment.</Note>;
  return (
    <MiniConversation
      key={name}
      parts={parts}
      label={`Conversation in ${name}`}
      still={!live}
      waiting={working && !typing && !asks}
      onAnswer={onAnswer}
      className="min-h-0 flex-1"
    />
  );
}

/** The question of a user task, with its form. */
function Question({
  a,
  view,
  thread,
  live,
  onAnswer,
  onLive,
  focus,
  refused,
}: { a: WorkflowActivation } & PanelContext) {
  const place = useRef<HTMLDivElement>(null);
  const asked = questionOf(a, view.permissions ?? [], thread);
  const open = asked?.status === "open";
  useEffect(() => {
    if (focus > 0 && open) place.current?.querySelector<HTMLElement>("input, select, textarea, button")?.focus();
  }, [focus, open]);
  if (!asked) return a.type === "userTask" ? <Note>Nothing was asked at this moment.</Note> : null;
  return (
    <div ref={place} className="flex min-h-0 flex-col gap-2 overflow-y-auto p-3 text-[13px]">
      {open && !live && (
        <p className="flex flex-wrap items-center gap-x-3 gap-y-1 text-muted">
          This is how it was at the playhead.
          <Button look="primary" className="max-sm:h-11" onClick={onLive}>
            Go live to answer
          </Button>
        </p>
      )}
      {open && live && refused !== undefined && <p className="text-muted">Cannot answer: {refused}.</p>}
      <Ask permission={asked} onAnswer={live && refused === undefined ? onAnswer : undefined} />
    </div>
  );
}

/** The engine gives the question of a user task the id of its activation, after that of its run. */
export function questionOf(a: WorkflowActivation, permissions: Permission[], thread: string): Permission | undefined {
  const open = a.waits?.find((w) => w.permission)?.permission;
  const end = a.end_offset ?? Number.POSITIVE_INFINITY;
  return permissions.findLast(
    (p) =>
      p.thread === thread &&
      (open ? p.id === open : p.id.endsWith(`.${a.id}`) && p.offset > a.offset && p.offset <= end),
  );
}
