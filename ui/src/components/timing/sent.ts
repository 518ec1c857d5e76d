import type { ContextMessage } from "@tapedeck/client";

/** What a model was sent, by kind, with the share of each in the characters. */
export interface SentPart {
  role: string;
  messages: number;
  chars: number;
  share: number;
}

/** The text of a message, with the calls that it makes. */
export function textOf(m: ContextMessage): string {
  const calls = (m.tool_calls ?? []).map((c) => `${c.function.name}(${c.function.arguments})`);
  return [m.content ?? "", ...calls].filter((t) => t !== "").join("\n");
}

export const roleLabels: Record<string, string> = {
  system: "System prompt",
  user: "User",
  assistant: "Agent",
  tool: "Results of tools",
};

/** How much of a context each role has, in the order of the log's roles. */
export function partsOf(messages: ContextMessage[]): SentPart[] {
  const parts = new Map<string, SentPart>();
  let all = 0;
  for (const role of Object.keys(roleLabels)) parts.set(role, { role, messages: 0, chars: 0, share: 0 });
  for (const m of messages) {
    const part = parts.get(m.role) ?? { role: m.role, messages: 0, chars: 0, share: 0 };
    const n = textOf(m).length;
    part.messages++;
    part.chars += n;
    all += n;
    parts.set(m.role, part);
  }
  return [...parts.values()].filter((p) => p.messages > 0).map((p) => ({ ...p, share: all > 0 ? p.chars / all : 0 }));
}
