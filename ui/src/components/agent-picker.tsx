import type { Agent } from "@tapedeck/client";
import type { Answerer, Choice } from "@/hooks/agents";
import { Icon } from "./icons";

/** Why an agent cannot be chosen, in its line of a list. */
const suffix = (a: Agent) => (a.unavailable ? " (cannot run here)" : "");

interface Props {
  id: string;
  agents: Agent[];
  answerer: Answerer;
  onChoose: (c: Choice) => void;
}

/** Names the agent that will answer, and its model if it offers several. Both can be changed. */
export function AgentPicker({ id, agents, answerer, onChoose }: Props) {
  const { agent, model, outside, program, why } = answerer;
  return (
    <div className="flex min-w-0 flex-wrap items-center gap-x-2 gap-y-1 text-[13px] text-muted">
      <span
        className={`inline-flex h-7 min-w-0 items-center gap-1.5 rounded-full border pr-1 pl-2.5 pointer-coarse:h-auto ${agent || outside ? "border-field" : "border-warn"}`}
      >
        <Icon name="agent" className="size-3.5" />
        <label htmlFor={id}>{agent || outside ? "Answers:" : "Who answers?"}</label>
        <select
          id={id}
          aria-label="Agent that answers"
          title={agent?.unavailable ?? agent?.description}
          className="h-full max-w-44 pointer-coarse:min-h-11 min-w-0 rounded-full bg-transparent font-medium text-text"
          value={agent?.name ?? ((outside && program) || "")}
          onChange={(e) => onChoose({ agent: e.target.value })}
        >
          {!agent && !(outside && program) && (
            <option value="" disabled>
              {outside ? "an outside program" : "Choose…"}
            </option>
          )}
          {program && <option value={program}>{`${program} (outside)`}</option>}
          {agents.map((a) => (
            <option key={a.name} value={a.name} disabled={!!a.unavailable && a.name !== agent?.name}>
              {a.name + suffix(a)}
            </option>
          ))}
        </select>
        {agent?.models && (
          <select
            aria-label={`Model of ${agent.name}`}
            className="h-full max-w-44 pointer-coarse:min-h-11 min-w-0 rounded-full border-l border-line bg-transparent pl-1 text-text"
            value={model ?? agent.models[0]}
            onChange={(e) => onChoose({ agent: agent.name, model: e.target.value })}
          >
            {agent.models.map((m) => (
              <option key={m}>{m}</option>
            ))}
          </select>
        )}
      </span>
      {why && <span className={outside ? "text-muted" : "text-warn"}>{why}</span>}
      {agent?.unavailable && <span className="text-warn">It cannot run here: {agent.unavailable}.</span>}
    </div>
  );
}
