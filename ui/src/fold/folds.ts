import { activityDelta, activitySnapshot } from "./activity";
import type { Conversation } from "./conversation";
import type { Lane } from "./lane";
import { textContent, textEnd, textStart } from "./message";
import { permissionAnswered, permissionRequested } from "./permission";
import { messageAdded, messagesSnapshot } from "./restate";
import { agentLinked, runEnded, runStarted, subagentStarted } from "./run";
import { planUpdated, stateDelta, stateSnapshot } from "./state";
import { toolArgs, toolEnd, toolResult, toolStart } from "./tool";
import type { Event } from "./types";

/** What an event type does. It reports false if the data of the event has another shape than its type says. */
type Fold = (c: Conversation, l: Lane, e: Event) => boolean;

export const folds = new Map<string, Fold>([
  ["message.added", messageAdded],
  ["MESSAGES_SNAPSHOT", messagesSnapshot],
  ["TEXT_MESSAGE_START", textStart],
  ["TEXT_MESSAGE_CONTENT", textContent],
  ["TEXT_MESSAGE_END", textEnd],
  ["REASONING_MESSAGE_START", textStart],
  ["REASONING_MESSAGE_CONTENT", textContent],
  ["REASONING_MESSAGE_END", textEnd],
  ["ACTIVITY_SNAPSHOT", activitySnapshot],
  ["ACTIVITY_DELTA", activityDelta],
  ["TOOL_CALL_START", toolStart],
  ["TOOL_CALL_ARGS", toolArgs],
  ["TOOL_CALL_END", toolEnd],
  ["TOOL_CALL_RESULT", toolResult],
  ["RUN_STARTED", runStarted],
  ["RUN_FINISHED", runEnded],
  ["RUN_ERROR", runEnded],
  ["SUBAGENT_STARTED", subagentStarted],
  ["STATE_SNAPSHOT", stateSnapshot],
  ["STATE_DELTA", stateDelta],
  ["plan.updated", planUpdated],
  ["permission.requested", permissionRequested],
  ["permission.answered", permissionAnswered],
  ["agent.linked", agentLinked],
]);
