import { activityDelta, activitySnapshot } from "./activity.ts";
import type { Conversation } from "./conversation.ts";
import { textContent, textEnd, textStart } from "./message.ts";
import { permissionAnswered, permissionRequested } from "./permission.ts";
import { messageAdded, messagesSnapshot } from "./restate.ts";
import { agentLinked, runEnded, runStarted, subagentStarted } from "./run.ts";
import { planUpdated, stateDelta, stateSnapshot } from "./state.ts";
import type { ThreadFold } from "./thread.ts";
import { toolArgs, toolEnd, toolResult, toolStart } from "./tool.ts";
import type { Event } from "./types.ts";

/** Folds one type of event. It returns false if the data of the event does not have the shape of its type. */
type Fold = (c: Conversation, t: ThreadFold, e: Event) => boolean;

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
