package payload

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck"
)

// RunStartedData begins a run. Its metadata has, under [tapedeck.VendorKey], the owner of
// the run if an engine holds it; see [tapedeck.OpenRun].
type RunStarted struct {
	ThreadID        string    `json:"threadId"`
	RunID           string    `json:"runId"` // the invocation
	ProtocolVersion string    `json:"protocolVersion,omitempty"`
	ParentRunID     string    `json:"parentRunId,omitempty"` // the run that started this one as a run of its own
	Input           *RunInput `json:"input,omitempty"`
	Common
}

// A RunInput is what a run was started with.
type RunInput struct {
	ThreadID        string           `json:"threadId"`
	RunID           string           `json:"runId"`
	ProtocolVersion string           `json:"protocolVersion,omitempty"`
	ParentRunID     string           `json:"parentRunId,omitempty"`
	State           json.RawMessage  `json:"state,omitempty"`
	Messages        []Message        `json:"messages"`
	Tools           json.RawMessage  `json:"tools,omitempty" shape:"array"`
	Context         json.RawMessage  `json:"context,omitempty" shape:"array"`
	ForwardedProps  json.RawMessage  `json:"forwardedProps,omitempty" shape:"some"`
	Resume          json.RawMessage  `json:"resume,omitempty" shape:"array"`
	Extra           tapedeck.Members `json:"-"`
}

// RunFinishedData ends a run that did not fail.
type RunFinished struct {
	ThreadID string          `json:"threadId"`
	RunID    string          `json:"runId"`
	Result   json.RawMessage `json:"result,omitempty" shape:"some"`
	Outcome  *Outcome        `json:"outcome,omitempty"` // nil for success
	Usage    []TokenUsage    `json:"usage,omitempty"`
	Common
}

// An Outcome says how a run or a subagent ended.
type Outcome struct {
	Type               string           `json:"type"`
	Interrupts         []Interrupt      `json:"interrupts,omitempty"`         // of [payload.OutcomeInterrupt], at least one
	InterruptIDs       []string         `json:"interruptIds,omitempty"`       // of [payload.OutcomeSuspended]
	PendingToolCallIDs []string         `json:"pendingToolCallIds,omitempty"` // of [payload.OutcomeSuccess]: calls that the front end is to answer
	Extra              tapedeck.Members `json:"-"`
}

// An Interrupt is a question for which a run waits. It is answered in the input
// of the next run on the thread.
type Interrupt struct {
	ID             string           `json:"id" shape:"id"`
	Reason         string           `json:"reason"`
	Message        string           `json:"message,omitempty"`
	ToolCallID     string           `json:"toolCallId,omitempty"`
	ResponseSchema json.RawMessage  `json:"responseSchema,omitempty" shape:"object"`
	ExpiresAt      string           `json:"expiresAt,omitempty"`
	SubagentRunID  string           `json:"subagentRunId,omitempty" shape:"id"`
	Metadata       tapedeck.Members `json:"metadata,omitempty"`
	Extra          tapedeck.Members `json:"-"`
}

// TokenCounts count the tokens of model calls. Nil is not known. Cached, cache
// write and reasoning tokens are parts of the totals, never additions to them.
type TokenCounts struct {
	Provider              string `json:"provider,omitempty"`
	Model                 string `json:"model,omitempty"`
	InputTokens           *int64 `json:"inputTokens,omitempty"`
	OutputTokens          *int64 `json:"outputTokens,omitempty"`
	TotalTokens           *int64 `json:"totalTokens,omitempty"` // input and output
	ReasoningTokens       *int64 `json:"reasoningTokens,omitempty"`
	CachedInputTokens     *int64 `json:"cachedInputTokens,omitempty"`
	CacheWriteInputTokens *int64 `json:"cacheWriteInputTokens,omitempty"`
}

// TokenUsage is what a run used of one model, its subagents included.
type TokenUsage struct {
	TokenCounts
	Extra tapedeck.Members `json:"-"`
}

// RunErrorData ends a run that failed.
type RunError struct {
	Message string       `json:"message"`        // what went wrong, for people
	Code    string       `json:"code,omitempty"` // for programs, such as [tapedeck.CodeInterrupted]
	Usage   []TokenUsage `json:"usage,omitempty"`
	Common
}

// StepStartedData begins a phase of a run. Each subagent has steps of its own.
type StepStarted struct {
	StepName string `json:"stepName"`
	Attributed
}

// StepFinishedData ends the step of its name and subagent.
type StepFinished struct {
	StepName string `json:"stepName"`
	Attributed
}

// TextMessageStartData opens a message that is streamed. A message that was
// closed can be opened again; then its text goes on.
type TextMessageStart struct {
	MessageID string `json:"messageId" shape:"id"`
	Role      string `json:"role,omitempty"` // [payload.RoleAssistant] if empty; never [payload.RoleTool]
	Name      string `json:"name,omitempty"`
	Attributed
}

// TextMessageContentData appends to an open message.
type TextMessageContent struct {
	MessageID string `json:"messageId" shape:"id"`
	Delta     string `json:"delta"`
	Cuts      []Cut  `json:"cuts,omitempty"`
	Attributed
}

// A Cut is a part of a delta into which several were joined: its length in bytes
// of UTF-8, and when it came, in milliseconds after the time of the event. The
// lengths of all cuts sum up to that of the delta, and times do not go back.
type Cut [2]int64

// TextMessageEndData closes a message.
type TextMessageEnd struct {
	MessageID string `json:"messageId" shape:"id"`
	Attributed
}

// TextMessageChunkData is shorthand for start, content and end of a message:
// the first chunk names the message, later ones need not.
type TextMessageChunk struct {
	MessageID string `json:"messageId,omitempty" shape:"id"`
	Role      string `json:"role,omitempty"`
	Delta     string `json:"delta,omitempty"`
	Name      string `json:"name,omitempty"`
	Attributed
}

// ToolCallStartData opens a tool call.
type ToolCallStart struct {
	ToolCallID      string `json:"toolCallId" shape:"id"`
	ToolCallName    string `json:"toolCallName"`
	ParentMessageID string `json:"parentMessageId,omitempty"` // the message that it is a part of
	Attributed
}

// ToolCallArgsData appends to the arguments, which are JSON when complete.
type ToolCallArgs struct {
	ToolCallID string `json:"toolCallId" shape:"id"`
	Delta      string `json:"delta"`
	Cuts       []Cut  `json:"cuts,omitempty"`
	Attributed
}

// ToolCallEndData closes a tool call: its arguments are complete.
type ToolCallEnd struct {
	ToolCallID string `json:"toolCallId" shape:"id"`
	Attributed
}

// ToolCallChunkData is shorthand for start, arguments and end of a tool call:
// the first chunk has its id and name, later ones need not.
type ToolCallChunk struct {
	ToolCallID      string `json:"toolCallId,omitempty" shape:"id"`
	ToolCallName    string `json:"toolCallName,omitempty"`
	ParentMessageID string `json:"parentMessageId,omitempty"`
	Delta           string `json:"delta,omitempty"`
	Attributed
}

// ToolCallResultData is what a tool answered: a message of its own.
type ToolCallResult struct {
	MessageID  string          `json:"messageId" shape:"id"`
	ToolCallID string          `json:"toolCallId" shape:"id"`
	Content    json.RawMessage `json:"content" shape:"text"`
	Role       string          `json:"role,omitempty"` // [payload.RoleTool]
	Attributed
}

// StateSnapshotData replaces the state that agent and front end share.
type StateSnapshot struct {
	Snapshot json.RawMessage `json:"snapshot"` // any JSON
	Attributed
}

// StateDeltaData changes the shared state.
type StateDelta struct {
	Delta json.RawMessage `json:"delta" shape:"patch"` // a JSON patch
	Attributed
}

// MessagesSnapshotData restates the messages of the thread.
type MessagesSnapshot struct {
	Messages []Message `json:"messages"`
	Common
}

// ActivitySnapshotData shows something an agent does that is not a message.
type ActivitySnapshot struct {
	MessageID    string          `json:"messageId" shape:"id"`
	ActivityType string          `json:"activityType"`
	Content      json.RawMessage `json:"content" shape:"object"`
	Replace      *bool           `json:"replace,omitempty"` // nil and true replace an activity of that id; false leaves it
	Attributed
}

// ActivityDeltaData changes the content of an activity.
type ActivityDelta struct {
	MessageID    string          `json:"messageId" shape:"id"`
	ActivityType string          `json:"activityType"`
	Patch        json.RawMessage `json:"patch" shape:"patch"` // a JSON patch
	Attributed
}

// ReasoningStartData opens a span of thinking. Its id may be that of a message
// in it, which is nevertheless another thing.
type ReasoningStart struct {
	MessageID string `json:"messageId" shape:"id"`
	Attributed
}

// ReasoningEndData closes a span of thinking.
type ReasoningEnd struct {
	MessageID string `json:"messageId" shape:"id"`
	Attributed
}

// ReasoningMessageStartData opens a message of thinking.
type ReasoningMessageStart struct {
	MessageID string `json:"messageId" shape:"id"`
	Role      string `json:"role"` // [payload.RoleReasoning]
	Attributed
}

// ReasoningMessageContentData appends to a message of thinking.
type ReasoningMessageContent struct {
	MessageID string `json:"messageId" shape:"id"`
	Delta     string `json:"delta"`
	Cuts      []Cut  `json:"cuts,omitempty"`
	Attributed
}

// ReasoningMessageEndData closes a message of thinking.
type ReasoningMessageEnd struct {
	MessageID string `json:"messageId" shape:"id"`
	Attributed
}

// ReasoningMessageChunkData is shorthand for start, content and end of a message
// of thinking: the first chunk names it, later ones need not.
type ReasoningMessageChunk struct {
	MessageID string `json:"messageId,omitempty" shape:"id"`
	Delta     string `json:"delta,omitempty"`
	Attributed
}

// ReasoningEncryptedValueData is what the model's provider wants back unseen.
type ReasoningEncryptedValue struct {
	Subtype        string `json:"subtype"` // "message" or "tool-call": what EntityID names
	EntityID       string `json:"entityId"`
	EncryptedValue string `json:"encryptedValue"`
	Attributed
}

// SubagentStartedData begins an invocation of a subagent within the run.
type SubagentStarted struct {
	SubagentRunID       string `json:"subagentRunId" shape:"id"` // of this invocation, new in this run
	Name                string `json:"name"`
	Description         string `json:"description,omitempty"`
	ParentSubagentRunID string `json:"parentSubagentRunId,omitempty" shape:"id"`
	ParentToolCallID    string `json:"parentToolCallId,omitempty"`
	ParentMessageID     string `json:"parentMessageId,omitempty"`
	Common
}

// SubagentFinishedData ends an invocation of a subagent.
type SubagentFinished struct {
	SubagentRunID string          `json:"subagentRunId" shape:"id"`
	Result        json.RawMessage `json:"result,omitempty" shape:"some"`
	Outcome       *Outcome        `json:"outcome,omitempty"` // nil for success
	Common
}

// SubagentErrorData ends an invocation of a subagent that failed. The run may
// go on.
type SubagentError struct {
	SubagentRunID string `json:"subagentRunId" shape:"id"`
	Message       string `json:"message"`
	Code          string `json:"code,omitempty"`
	Common
}

// RawData is an event of another system.
type Raw struct {
	Event  json.RawMessage `json:"event"` // any JSON
	Source string          `json:"source,omitempty"`
	Attributed
}

// CustomData is an event of an application's own. Names without a prefix of
// their vendor are reserved.
type Custom struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"` // any JSON, null if nil
	Attributed
}

// The types of a [payload.Outcome].
const (
	OutcomeSuccess   = "success"
	OutcomeInterrupt = "interrupt" // of a run: it waits for the answers to its interrupts
	OutcomeCancelled = "cancelled" // of a run
	OutcomeSuspended = "suspended" // of a subagent: a later run may go on with it
)

// CodeRunEnded is the code of the SUBAGENT_ERROR that ends a subagent whose run
// ends before it.
const CodeRunEnded = "run_ended"
