package tapedeck

import (
	"strings"
)

// These are the event types of Tapedeck. The types of AG-UI 1.0 are in agui.go.
// Unknown types are stored unchanged.
const (
	MessageAdded = "message.added" // a whole message that was not streamed: user, system, developer, tool input

	PermissionRequested = "permission.requested"
	PermissionAnswered  = "permission.answered"

	InstanceStarted = "instance.started"
	PlanUpdated     = "plan.updated"
	AgentStarted    = "agent.started" // the process of an agent
	AgentLinked     = "agent.linked"  // the runner's id of its own conversation, with which it can be resumed
	UsageReported   = "usage.reported"

	AttemptSuperseded = "attempt.superseded" // a running agent repeats a step; see [Jump]

	WorkflowStarted   = "workflow.started"
	WorkflowEntered   = "workflow.entered"
	WorkflowWaiting   = "workflow.waiting"
	WorkflowCaught    = "workflow.caught"
	WorkflowLeft      = "workflow.left"
	WorkflowFailed    = "workflow.failed"
	WorkflowVariables = "workflow.variables"
	WorkflowMessage   = "workflow.message"
	WorkflowEnded     = "workflow.ended"

	TerminalOutput = "terminal.output"
	TerminalInput  = "terminal.input"
	TerminalResize = "terminal.resize"
	TerminalExit   = "terminal.exit"

	PresenceJoined = "presence.joined"
	PresenceLeft   = "presence.left"
	PresenceMoved  = "presence.moved"

	SessionCreated     = "session.created"
	SessionRenamed     = "session.renamed"
	SessionRewound     = "session.rewound"
	SessionCleared     = "session.cleared"
	SessionOverwritten = "session.overwritten"
	SessionForked      = "session.forked"
	SessionImported    = "session.imported"
	SessionRedacted    = "session.redacted"
	SessionClosed      = "session.closed"
	FeedbackAdded      = "feedback.added"
	BookmarkAdded      = "bookmark.added"
)

// Package payload exports the types of inputs: few packages need them.
const (
	inputQueued    = "input.queued"
	inputMoved     = "input.moved"
	inputSteered   = "input.steered"
	inputStarted   = "input.started"
	inputWithdrawn = "input.withdrawn"
)

// ChannelOf returns the channel of an event type, "" for an unknown type.
func ChannelOf(typ string) string {
	switch prefix, _, _ := strings.Cut(typ, "."); prefix {
	case "workflow":
		return ChannelWorkflow
	case "terminal":
		return ChannelTerminal
	case "presence":
		return ChannelPresence
	case "session", "feedback", "bookmark", "input", "attempt":
		return ChannelSession
	}
	switch typ {
	case MessageAdded:
		return ChannelChunks
	case PermissionRequested, PermissionAnswered:
		return ChannelToolCalls
	case InstanceStarted, PlanUpdated, AgentStarted, AgentLinked, UsageReported, Raw, Custom, MessagesSnapshot:
		return ChannelAgentState
	}
	for _, f := range prefixes {
		if strings.HasPrefix(typ, f.prefix) {
			return f.channel
		}
	}
	return ""
}

// prefixes has the channels of AG-UI types by prefix, so that a type that a
// later version adds gets the channel of similar types.
var prefixes = [...]struct{ prefix, channel string }{
	{"TEXT_MESSAGE_", ChannelChunks}, {"REASONING_", ChannelChunks}, {"THINKING_", ChannelChunks},
	{"TOOL_CALL_", ChannelToolCalls},
	{"RUN_", ChannelAgentState}, {"STEP_", ChannelAgentState}, {"STATE_", ChannelAgentState},
	{"ACTIVITY_", ChannelAgentState}, {"SUBAGENT_", ChannelAgentState},
}

// eventTypes are the types of the catalogue, see package payload.
var eventTypes = [...]string{
	MessageAdded, TextMessageStart, TextMessageContent, TextMessageEnd, TextMessageChunk, ReasoningStart,
	ReasoningMessageStart, ReasoningMessageContent, ReasoningMessageEnd, ReasoningMessageChunk, ReasoningEnd,
	ReasoningEncryptedValue, ToolCallStart, ToolCallArgs, ToolCallEnd, ToolCallChunk, ToolCallResult,
	PermissionRequested, PermissionAnswered, RunStarted, RunFinished, RunError, StepStarted, StepFinished,
	StateSnapshot, StateDelta, MessagesSnapshot, ActivitySnapshot, ActivityDelta, SubagentStarted,
	SubagentFinished, SubagentError, Raw, Custom, InstanceStarted, PlanUpdated, AgentStarted, AgentLinked,
	UsageReported, AttemptSuperseded, WorkflowStarted, WorkflowEntered, WorkflowWaiting, WorkflowCaught, WorkflowLeft,
	WorkflowFailed, WorkflowVariables, WorkflowMessage, WorkflowEnded, TerminalOutput, TerminalInput, TerminalResize, TerminalExit, PresenceJoined, PresenceLeft,
	PresenceMoved, SessionCreated, SessionRenamed, SessionRewound, SessionCleared, SessionOverwritten,
	SessionForked, SessionImported, SessionRedacted, SessionClosed, FeedbackAdded, BookmarkAdded,
	inputQueued, inputMoved, inputSteered, inputStarted, inputWithdrawn,
}

// typeNames maps every known type to itself, so that decoding a known type
// allocates no string.
var typeNames = func() map[string]string {
	m := make(map[string]string, len(eventTypes))
	for _, t := range eventTypes {
		m[t] = t
	}
	return m
}()
