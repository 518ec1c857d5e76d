// @tapedeck/client/fold: events in, conversation out. The server folds the same way.
export { Clock, isAdministrative, playedGaps, positionBy, type Silence } from "./clock.ts";
export { Conversation } from "./conversation.ts";
export { isObject, Reader, read } from "./read.ts";
export { type Size, sizeOf, type TerminalInfo, Terminals } from "./terminals.ts";
export { jumpOf, mainThread, reverts, Timeline } from "./timeline.ts";
export { WorkflowFold } from "./workflow.ts";
export type {
  WorkflowActivation,
  WorkflowElement,
  WorkflowToken,
  WorkflowView,
  WorkflowWait,
} from "./workflow-types.ts";
