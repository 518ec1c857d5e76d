package tapedeck

// These are the event types of AG-UI 1.0. The data of each is the struct of the
// same name in package payload.
const (
	RunStarted  = "RUN_STARTED"
	RunFinished = "RUN_FINISHED"
	RunError    = "RUN_ERROR"

	StepStarted  = "STEP_STARTED"
	StepFinished = "STEP_FINISHED"

	TextMessageStart   = "TEXT_MESSAGE_START"
	TextMessageContent = "TEXT_MESSAGE_CONTENT"
	TextMessageEnd     = "TEXT_MESSAGE_END"
	TextMessageChunk   = "TEXT_MESSAGE_CHUNK" // shorthand; the log has the three types above

	ToolCallStart  = "TOOL_CALL_START"
	ToolCallArgs   = "TOOL_CALL_ARGS"
	ToolCallEnd    = "TOOL_CALL_END" // the arguments are complete; the tool may not have run yet
	ToolCallChunk  = "TOOL_CALL_CHUNK"
	ToolCallResult = "TOOL_CALL_RESULT"

	StateSnapshot    = "STATE_SNAPSHOT"
	StateDelta       = "STATE_DELTA"
	MessagesSnapshot = "MESSAGES_SNAPSHOT"
	ActivitySnapshot = "ACTIVITY_SNAPSHOT"
	ActivityDelta    = "ACTIVITY_DELTA"

	ReasoningStart          = "REASONING_START"
	ReasoningEnd            = "REASONING_END"
	ReasoningMessageStart   = "REASONING_MESSAGE_START"
	ReasoningMessageContent = "REASONING_MESSAGE_CONTENT"
	ReasoningMessageEnd     = "REASONING_MESSAGE_END"
	ReasoningMessageChunk   = "REASONING_MESSAGE_CHUNK"
	ReasoningEncryptedValue = "REASONING_ENCRYPTED_VALUE"

	SubagentStarted  = "SUBAGENT_STARTED"
	SubagentFinished = "SUBAGENT_FINISHED"
	SubagentError    = "SUBAGENT_ERROR"

	Raw    = "RAW"
	Custom = "CUSTOM"
)
