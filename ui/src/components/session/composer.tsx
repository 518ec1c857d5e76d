import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { Connection, Input, Run, SessionInfo } from "@tapedeck/client";
import { useEffect, useRef, useState } from "react";
import { api } from "@/client";
import { agentsQuery, answererOf, useAgents, useChoice } from "@/hooks/agents";
import { useForget } from "@/hooks/forget";
import { useViewer } from "@/hooks/viewer";
import { AgentPicker } from "../agent-picker";
import { sentence } from "../format";
import { Button, ErrorBox, Kbd } from "../ui";
import { isUp } from "./header";
import { NoField, refusalOf } from "./no-field";
import { Queue, type When, WhenSwitch } from "./queue";

interface Props {
  id: string;
  thread: string;
  session: SessionInfo;
  /** The newest run of the thread. */
  run?: Run;
  /** What users sent while a run was open. */
  inputs?: readonly Input[];
  /** The thread has an unanswered permission request. */
  asks: boolean;
  live: boolean;
  onLive: () => void;
  connection?: Connection;
}

const chooseWho = "choose who answers.";

/** The draft of each session survives a reload. */
const draftKey = (id: string) => `tapedeck.draft.${id}`;

/** Sets the draft of a session, whether or not its page is open. */
export function putDraft(id: string, text: string): void {
  sessionStorage.setItem(draftKey(id), text);
  dispatchEvent(new CustomEvent("tapedeck:draft", { detail: id }));
}

/** Puts a text that was not sent back into the draft, before the text typed since. */
function putBack(id: string, text: string): void {
  const typed = sessionStorage.getItem(draftKey(id));
  putDraft(id, text && typed ? `${text}\n${typed}` : text || (typed ?? ""));
}

function useDraft(id: string) {
  const [text, setText] = useState(() => sessionStorage.getItem(draftKey(id)) ?? "");
  useEffect(() => {
    const onPut = () => setText(sessionStorage.getItem(draftKey(id)) ?? "");
    onPut();
    addEventListener("tapedeck:draft", onPut);
    return () => removeEventListener("tapedeck:draft", onPut);
  }, [id]);
  const set = (to: string) => {
    setText(to);
    if (to) sessionStorage.setItem(draftKey(id), to);
    else sessionStorage.removeItem(draftKey(id));
  };
  return [text, set] as const;
}

export function Composer({ id, thread, session, run, inputs = [], asks, live, onLive, connection }: Props) {
  const [text, setText] = useDraft(id);
  const agents = useAgents();
  const [choice, choose] = useChoice(id);
  const viewer = useViewer();
  const running = run?.status === "running";
  const newest = inputs.findLast((i) => i.status === "waiting" && i.thread === thread);
  const question = {
    choice,
    last: run?.agent,
    own: session.agent,
    mayWait: true,
    running,
    waitsFor: newest?.outside ? (newest.agent ?? "") : undefined,
  };
  const answerer = answererOf({ ...question, agents: agents.data });
  const [refused, setRefused] = useState(""); // the text for which nobody was chosen
  const [when, setWhen] = useState<When>("queue");
  const area = useRef<HTMLTextAreaElement>(null);
  const on = thread === "main" ? undefined : thread;
  const queries = useQueryClient();
  const send = useMutation({
    mutationFn: async (task: string) => {
      // The first message of a page can be sent before the page knows the agents.
      const by = agents.data ? answerer : answererOf({ ...question, agents: await queries.fetchQuery(agentsQuery) });
      if (!by.agent && !by.outside) throw new Error(`Nothing was sent: ${chooseWho}`);
      return api.task(id, {
        task,
        thread: on,
        when,
        agent: by.agent?.name ?? (by.outside ? by.program : undefined),
        ...(by.model ? { config: { model: by.model } } : {}),
      });
    },
    onMutate: () => setText(""),
    onSuccess: () => setWhen("queue"),
    onError: (_, task) => putBack(id, task),
  });
  const stop = useMutation({ mutationFn: () => api.cancel(id, run?.invocation) });
  const resume = useMutation({
    mutationFn: (task: string) =>
      api.resume(id, { thread: on, task: task || undefined, agent: choice && answerer.agent?.name }),
    onMutate: () => setText(""),
    onError: (_, task) => putBack(id, task),
  });
  const failed = [send, stop, resume].find((m) => m.isError);
  const up = connection && isUp(connection);
  useForget([send], answerer.agent?.name, up);
  useForget([stop, resume], `${run?.invocation} ${run?.status}`, up);
  const { isError: unread, refetch } = agents;
  useEffect(() => {
    if (up && unread) void refetch();
  }, [up, unread, refetch]);
  // A remark is about a message that waits.
  const note = inputs.some((i) => i.id === send.data?.input_id && i.status === "waiting") && send.data?.note;
  const submit = () => {
    if (!text.trim() || send.isPending) return;
    // An agent that nobody named must not answer.
    if (agents.data && !answerer.agent && !answerer.outside) {
      setRefused(text);
      document.getElementById("composer-agent")?.focus();
    } else {
      if (resume.isError) resume.reset();
      send.mutate(text.trim());
    }
  };

  const refusal = refusalOf(connection, session, viewer);
  if (refusal) return <NoField why={refusal} text={text} />;
  if (!live)
    return (
      <div className="not-zen flex items-center gap-3 border-t border-line bg-panel px-4 py-2 text-[13px] text-muted">
        Viewing an earlier moment.
        <Button onClick={onLive}>
          Go live <Kbd>L</Kbd>
        </Button>
      </div>
    );
  return (
    <form
      className="not-zen border-t border-line bg-panel px-4 py-2"
      onSubmit={(e) => {
        e.preventDefault();
        submit();
      }}
    >
      {failed && (
        <div className="mb-2">
          <ErrorBox error={failed.error} onClose={() => failed.reset()} />
        </div>
      )}
      <Queue id={id} thread={thread} inputs={inputs} />
      {note && !answerer.outside && (
        <p role="status" className="mb-2 text-[13px] text-muted">
          {sentence(note)}
        </p>
      )}
      <div className="flex flex-wrap items-end gap-2">
        <textarea
          ref={area}
          id="composer"
          aria-label="Message to the agent"
          placeholder={
            !running
              ? answerer.agent
                ? `Give ${answerer.agent.name} a task`
                : answerer.outside
                  ? "Send what comes next"
                  : "Give the agent a task"
              : asks
                ? "The agent is waiting for an answer"
                : "The agent is working. Send what comes next"
          }
          rows={Math.min(6, text.split("\n").length)}
          value={text}
          onChange={(e) => {
            setText(e.target.value);
            if (!e.target.value.trim() && send.isError) send.reset();
          }}
          onKeyDown={(e) => {
            if (e.key === "Escape") area.current?.blur();
            if (e.key !== "Enter" || e.shiftKey || e.nativeEvent.isComposing) return;
            e.preventDefault();
            submit();
          }}
          className="min-h-8 min-w-48 flex-1 resize-none rounded-md border border-field bg-bg px-3 py-1.5 text-sm hover:border-strong"
        />
        {!running && canResume(run) && answerer.agent && (
          <Button
            id="resume"
            onClick={() => {
              if (send.isError) send.reset();
              resume.mutate(text.trim());
            }}
            busy={resume.isPending}
            title="Resume the interrupted run (R)"
          >
            Resume
          </Button>
        )}
        {running && text.trim() && <WhenSwitch value={when} onChange={setWhen} />}
        {running && (
          <Button look="danger" icon="stop" onClick={() => stop.mutate()} busy={stop.isPending}>
            Stop
          </Button>
        )}
        {(!running || text.trim()) && (
          <Button look="primary" type="submit" icon="send" disabled={!text.trim()} busy={send.isPending}>
            Send
          </Button>
        )}
      </div>
      <div className="mt-1.5 flex flex-wrap items-center gap-x-3 gap-y-1">
        {agents.isError ? (
          <span className="text-[13px] text-bad">The agents of the server cannot be read.</span>
        ) : (
          agents.data && <AgentPicker id="composer-agent" agents={agents.data} answerer={answerer} onChoose={choose} />
        )}
        {refused !== "" && refused === text && !answerer.agent && !answerer.outside && (
          <span role="alert" className="text-[13px] font-medium text-bad">
            Nothing was sent: {chooseWho}
          </span>
        )}
      </div>
    </form>
  );
}

/** Whether a run ended early and can be resumed, by its agent or by another one of this server. */
export function canResume(run?: Run): boolean {
  if (!run) return false;
  return (
    run.status === "interrupted" || run.status === "failed" || (run.status === "cancelled" && run.resumable === true)
  );
}
