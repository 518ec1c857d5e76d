package tapedeck

import (
	"strings"
)

// Types of ours. Everything else that we know is an AG-UI 1.0 event type, see
// agui.go. An unknown type is kept as it is.
const (
	MessageAdded = "message.added" // a whole message that no model streamed: user, system, developer, tool input

	PermissionRequested = "permission.requested"
	PermissionAnswered  = "permission.answered"

	InstanceStarted = "instance.started"
	PlanUpdated     = "plan.updated"
	AgentStarted    = "agent.started" // the process that an agent is
	AgentLinked     = "agent.linked"  // the runner's own id of the conversation, with which it can be resumed
	UsageReported   = "usage.reported"

	WorkflowStarted   = "workflow.started"
	WorkflowEntered   = "workflow.entered"
	WorkflowLeft      = "workflow.left"
	WorkflowFailed    = "workflow.failed"
	WorkflowVariables = "workflow.variables"
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

// ChannelOf returns the channel of an event type, "" if we do not know the type.
func ChannelOf(typ string) string {
	switch family, _, _ := strings.Cut(typ, "."); family {
	case "workflow":
		return ChannelWorkflow
	case "terminal":
		return ChannelTerminal
	case "presence":
		return ChannelPresence
	case "session", "feedback", "bookmark":
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
	for _, f := range families {
		if strings.HasPrefix(typ, f.prefix) {
			return f.channel
		}
	}
	return ""
}

// families has the AG-UI types by prefix: a type that a later version adds to a
// family goes where the others are.
var families = [...]struct{ prefix, channel string }{
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
	UsageReported, WorkflowStarted, WorkflowEntered, WorkflowLeft, WorkflowFailed, WorkflowVariables,
	WorkflowEnded, TerminalOutput, TerminalInput, TerminalResize, TerminalExit, PresenceJoined, PresenceLeft,
	PresenceMoved, SessionCreated, SessionRenamed, SessionRewound, SessionCleared, SessionOverwritten,
	SessionForked, SessionImported, SessionRedacted, SessionClosed, FeedbackAdded, BookmarkAdded,
}

// typeNames has every known type by itself, so that a name that is read from an
// event costs no memory of its own.
var typeNames = func() map[string]string {
	m := make(map[string]string, len(eventTypes))
	for _, t := range eventTypes {
		m[t] = t
	}
	return m
}()
