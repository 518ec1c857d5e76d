import { queryOptions, useQuery } from "@tanstack/react-query";
import type { Agent } from "@tapedeck/client";
import { useState } from "react";
import { api } from "@/client";
import { remembered } from "./remembered";

/** Asks for the agents of the server, the default first. */
export const agentsQuery = queryOptions({
  queryKey: ["agents"],
  queryFn: ({ signal }) => api.agents({ signal }),
  staleTime: 60_000,
});

/** The agents of the server, the default first. */
export function useAgents() {
  return useQuery(agentsQuery);
}

/** Who a user has chosen to answer. */
export interface Choice {
  agent: string;
  /** One of the models that the agent offers; absent for its default. */
  model?: string;
}

interface Asked {
  choice?: Choice | undefined;
  /** The agent of the newest run of the thread. */
  last?: string | undefined;
  /** The agent of the session. */
  own?: string | undefined;
  /** Absent while they are loading. */
  agents?: Agent[] | undefined;
  /** The message can wait for an outside program. */
  mayWait?: boolean;
  /** A run is open in the thread. */
  running?: boolean;
  /** The agent of the outside program for which messages wait, perhaps without a name. */
  waitsFor?: string | undefined;
}

export interface Answerer {
  /** Who will answer; undefined: the user must choose. */
  agent?: Agent;
  model?: string;
  /** The message is for an outside program, which takes it. */
  outside?: boolean;
  /** The name of the outside program of the thread, which the user may choose. */
  program?: string;
  /** Why the user must choose, or what an outside program does. */
  why?: string;
}

/**
 * Who will answer the next message: the user's choice, or else the agent that answered
 * last, or else the agent of the session. An agent that this server does not have never
 * becomes another one silently.
 */
export function answererOf({ choice, last, own, agents, mayWait, running, waitsFor }: Asked): Answerer {
  if (!agents) return {};
  const find = (name?: string) => (name ? agents.find((a) => a.name === name) : undefined);
  const waiting = running ? "" : waitsFor;
  const name = waiting || last || own;
  // Only what waits can be for a program that is not an agent of the server.
  const program = mayWait ? [waitsFor, last, own].find((n) => n && n !== "workflow" && !find(n)) : undefined;
  const chosen = find(choice?.agent);
  if (chosen) {
    const model = chosen.models?.find((m) => m === choice?.model);
    return { agent: chosen, program, ...(model ? { model } : {}) };
  }
  const toProgram = program !== undefined && choice?.agent === program;
  const agent =
    toProgram || (waiting !== undefined && !running) ? undefined : (find(last) ?? (last ? undefined : find(own)));
  if (agent) return { agent, program };
  if (toProgram || waiting !== undefined)
    return {
      outside: true,
      program,
      why: `${program || name || "The agent"} works outside of this server, and gets the message when it asks.`,
    };
  if (agents.length === 0) return { program, why: "This server has no agents." };
  if (name === "workflow") return { why: "This session runs a workflow, which takes no messages. Choose who answers." };
  return { program, why: name ? `This server has no agent ${name}. Choose who answers.` : "Choose who answers." };
}

/** An agent that can run here and has not answered yet; undefined if there is none. */
export function anotherOf(agents: Agent[] | undefined, answered: string | undefined): Agent | undefined {
  return agents?.find((a) => a.name !== answered && a.name !== "workflow" && !a.unavailable);
}

const key = (session: string) => `tapedeck.answers.${session}`;

/** Remembers the choice for a session, for this browser. */
export function rememberChoice(session: string, choice: Choice): void {
  remembered.set(key(session), JSON.stringify(choice));
}

function remembers(session: string): Choice | undefined {
  try {
    const c = JSON.parse(remembered.get(key(session)) ?? "null");
    if (typeof c?.agent !== "string") return undefined;
    return typeof c.model === "string" ? { agent: c.agent, model: c.model } : { agent: c.agent };
  } catch {
    return undefined;
  }
}

/** The choice for a session, which outlives a reload. */
export function useChoice(session: string) {
  const [choice, set] = useState(() => remembers(session));
  const choose = (c: Choice) => {
    rememberChoice(session, c);
    set(c);
  };
  return [choice, choose] as const;
}
