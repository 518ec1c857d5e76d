import { useMutation } from "@tanstack/react-query";
import type { Json, NewEvent } from "@tapedeck/client";
import { useRef } from "react";
import { api } from "@/client";
import { type Choice, rememberChoice } from "./agents";

/** What is done in a new fork, before the page goes there. */
export interface ForkRun {
  /** The fork shares the events before this offset. */
  at: number;
  title: string;
  /** The shared state of the fork; absent: that of the moment where it leaves. */
  state?: { value: Json };
  /** What the agent is asked; absent: it is not called. */
  task?: { text: string; thread?: string; by: Choice };
}

/** Forks a session, changes the state of the fork, and gives it a task. */
export function useForkRun(id: string, onDone: (fork: string) => void) {
  // A fork whose state or task was refused is used by the next attempt.
  const made = useRef<string>(undefined);
  const has = useRef<{ value: Json }>(undefined);
  return useMutation({
    mutationFn: async ({ at, title, state, task }: ForkRun) => {
      made.current ??= (await api.fork(id, { at, title })).id;
      const fork = made.current;
      if (state && JSON.stringify(state) !== JSON.stringify(has.current)) {
        await api.append(fork, stateRun(state.value));
        has.current = state;
      }
      if (task) await start(fork, task);
      return fork;
    },
    onSuccess: onDone,
  });
}

/** The events that set a state. A state belongs to a run, so they are a run of their own, appended whole or not at all. */
function stateRun(snapshot: Json): NewEvent[] {
  const invocation = `state_${Date.now().toString(36)}`;
  const run = { threadId: "main", runId: invocation };
  return [
    { type: "RUN_STARTED", invocation, data: run },
    { type: "STATE_SNAPSHOT", invocation, data: { snapshot } },
    { type: "RUN_FINISHED", invocation, data: run },
  ];
}

async function start(fork: string, { text, thread, by }: NonNullable<ForkRun["task"]>): Promise<void> {
  const config = by.model ? { config: { model: by.model } } : {};
  await api.task(fork, { task: text, agent: by.agent, ...(thread ? { thread } : {}), ...config });
  rememberChoice(fork, by);
}
