package tapedeck

import "strings"

// Types of ours. Everything else that we know is an AG-UI 1.0 event type, see
// agui.go. An unknown type is kept as it is.
const (
	MessageAdded = "message.added" // a whole message that no model streamed: user, system, developer, tool input

	PermissionRequested = "permission.requested"
	PermissionAnswered  = "permission.answered"

	InstanceStarted = "instance.started"
	PlanUpdated     = "plan.updated"
	AgentLinked     = "agent.linked" // the runner's own id of the conversation, with which it can be resumed
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
	switch {
	case typ == MessageAdded,
		strings.HasPrefix(typ, "TEXT_MESSAGE_"), strings.HasPrefix(typ, "REASONING_"):
		return ChannelChunks
	case typ == PermissionRequested, typ == PermissionAnswered,
		strings.HasPrefix(typ, "TOOL_CALL_"):
		return ChannelToolCalls
	case typ == InstanceStarted, typ == PlanUpdated, typ == AgentLinked, typ == UsageReported,
		typ == "RAW", typ == "CUSTOM", typ == "MESSAGES_SNAPSHOT":
		return ChannelAgentState
	}
	for _, p := range [...]string{"RUN_", "STEP_", "STATE_", "ACTIVITY_", "SUBAGENT_"} {
		if strings.HasPrefix(typ, p) {
			return ChannelAgentState
		}
	}
	return ""
}
