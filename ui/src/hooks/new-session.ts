import { TapedeckError } from "@tapedeck/client";
import { createContext } from "react";
import { api } from "@/client";
import { rememberChoice } from "./agents";
import { folder as folderLabel } from "./labels";

/** Opens the dialog of a new session. */
export const OpenNewSession = createContext<() => void>(() => {});

export interface Start {
  task: string;
  agent: string;
  model?: string;
  folder?: string;
  title?: string;
}

/** The first line of a task, as a title. */
export function titleOf(task: string): string {
  const line = (task.trim().split("\n")[0] ?? "").replace(/\s+/g, " ").trim();
  const letters = [...line];
  return letters.length > 80 ? `${letters.slice(0, 79).join("")}…` : line;
}

/** Creates a session and gives the agent its first task. If the server refuses the task, there is no session. */
export async function startSession({ task, agent, model, folder, title }: Start): Promise<string> {
  const choice = model ? { agent, model } : { agent };
  const made = await api.create({
    title: title?.trim() || titleOf(task),
    agent,
    ...(folder ? { labels: { [folderLabel]: folder } } : {}),
  });
  try {
    await api.task(made.id, { task, agent, ...(model ? { config: { model } } : {}) });
  } catch (err) {
    // Without an answer the agent may have begun: then the session stays.
    if (err instanceof TapedeckError && err.status > 0) await api.remove(made.id).catch(() => undefined);
    throw err;
  }
  rememberChoice(made.id, choice);
  return made.id;
}
