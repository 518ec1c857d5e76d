package tapedeck

// The roles of a [payload.Message].
const (
	RoleDeveloper = "developer"
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
	RoleActivity  = "activity"
	RoleReasoning = "reasoning"
)

// The types of a [payload.Outcome].
const (
	OutcomeSuccess   = "success"
	OutcomeInterrupt = "interrupt" // of a run: it waits for the answers to its interrupts
	OutcomeCancelled = "cancelled" // of a run
	OutcomeSuspended = "suspended" // of a subagent: a later run may go on with it
)
