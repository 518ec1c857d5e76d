package payload

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck"
)

// RunStarted begins a run. If an engine holds the run, metadata.tapedeck has its owner.
// In Go, see [tapedeck.OpenRun].
type RunStarted struct {
	ThreadID        string    `json:"threadId"`
	RunID           string    `json:"runId"` // the invocation
	ProtocolVersion string    `json:"protocolVersion,omitempty"`
	ParentRunID     string    `json:"parentRunId,omitempty"` // the run that started this one, or the run before it in the thread
	Input           *RunInput `json:"input,omitempty"`
	Common
}

// A RunInput is the input of a run.
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

// RunFinished ends a run that did not fail.
type RunFinished struct {
	ThreadID string          `json:"threadId"`
	RunID    string          `json:"runId"`
	Result   json.RawMessage `json:"result,omitempty" shape:"some"`
	Outcome  *Outcome        `json:"outcome,omitempty"` // nil for success
	Usage    []TokenUsage    `json:"usage,omitempty"`
	Common
}

// An Outcome says how a run or a sub-agent ended.
type Outcome struct {
	Type               string           `json:"type"`
	Interrupts         []Interrupt      `json:"interrupts,omitempty"`         // for OutcomeInterrupt: at least one
	InterruptIDs       []string         `json:"interruptIds,omitempty"`       // for OutcomeSuspended
	PendingToolCallIDs []string         `json:"pendingToolCallIds,omitempty"` // for OutcomeSuccess: calls that the front end must answer
	Extra              tapedeck.Members `json:"-"`
}

// An Interrupt is a question for which a run waits. The input of the next run
// in the thread answers it.
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

// TokenCounts count the tokens of model calls. Nil means unknown. Cached, cache
// write and reasoning tokens are parts of the totals, never additions to them.
type TokenCounts struct {
	Provider              string `json:"provider,omitempty"`
	Model                 string `json:"model,omitempty"`
	InputTokens           *int64 `json:"inputTokens,omitempty"`
	OutputTokens          *int64 `json:"outputTokens,omitempty"`
	TotalTokens           *int64 `json:"totalTokens,omitempty"` // input plus output
	ReasoningTokens       *int64 `json:"reasoningTokens,omitempty"`
	CachedInputTokens     *int64 `json:"cachedInputTokens,omitempty"`
	CacheWriteInputTokens *int64 `json:"cacheWriteInputTokens,omitempty"`
}

// A TokenUsage is the usage of one model in a run, its sub-agents included.
type TokenUsage struct {
	TokenCounts
	Extra tapedeck.Members `json:"-"`
}

// RunError ends a run that failed.
type RunError struct {
	Message string       `json:"message"`        // the reason, for people
	Code    string       `json:"code,omitempty"` // for programs, such as [tapedeck.CodeInterrupted]
	Usage   []TokenUsage `json:"usage,omitempty"`
	Common
}

// StepStarted begins a step of a run. Each sub-agent has its own steps.
type StepStarted struct {
	StepName string `json:"stepName"`
	Attributed
}

// StepFinished ends the step with this name and sub-agent.
type StepFinished struct {
	StepName string `json:"stepName"`
	Attributed
}

// TextMessageStart opens a streamed message. It can reopen a closed message;
// then more text is added.
type TextMessageStart struct {
	MessageID string `json:"messageId" shape:"id"`
	Role      string `json:"role,omitempty"` // RoleAssistant if empty; never RoleTool
	Name      string `json:"name,omitempty"`
	Attributed
}

// TextMessageContent appends to an open message.
type TextMessageContent struct {
	MessageID string `json:"messageId" shape:"id"`
	Delta     Piece  `json:"delta"`
	Cuts      []Cut  `json:"cuts,omitempty"`
	Attributed
}

// A Cut is one of several deltas that were joined into one: its length in bytes
// of UTF-8, and its time in milliseconds after the time of the event. The
// lengths of all cuts add up to the length of the delta, and times never
// decrease.
type Cut [2]int64

// TextMessageEnd closes a message.
type TextMessageEnd struct {
	MessageID string `json:"messageId" shape:"id"`
	Attributed
}

// TextMessageChunk is shorthand for start, content and end of a message. The
// first chunk must have the id; later ones may omit it.
type TextMessageChunk struct {
	MessageID string `json:"messageId,omitempty" shape:"id"`
	Role      string `json:"role,omitempty"`
	Delta     Piece  `json:"delta,omitempty"`
	Name      string `json:"name,omitempty"`
	Attributed
}

// ToolCallStart opens a tool call.
type ToolCallStart struct {
	ToolCallID      string `json:"toolCallId" shape:"id"`
	ToolCallName    string `json:"toolCallName"`
	ParentMessageID string `json:"parentMessageId,omitempty"` // the message that it is part of
	Attributed
}

// ToolCallArgs appends to the arguments, which are JSON when complete.
type ToolCallArgs struct {
	ToolCallID string `json:"toolCallId" shape:"id"`
	Delta      Piece  `json:"delta"`
	Cuts       []Cut  `json:"cuts,omitempty"`
	Attributed
}

// ToolCallEnd closes a tool call: its arguments are complete.
type ToolCallEnd struct {
	ToolCallID string `json:"toolCallId" shape:"id"`
	Attributed
}

// ToolCallChunk is shorthand for start, arguments and end of a tool call. The
// first chunk must have id and name; later ones may omit them.
type ToolCallChunk struct {
	ToolCallID      string `json:"toolCallId,omitempty" shape:"id"`
	ToolCallName    string `json:"toolCallName,omitempty"`
	ParentMessageID string `json:"parentMessageId,omitempty"`
	Delta           Piece  `json:"delta,omitempty"`
	Attributed
}

// ToolCallResult is the answer of a tool: a message of its own.
type ToolCallResult struct {
	MessageID  string          `json:"messageId" shape:"id"`
	ToolCallID string          `json:"toolCallId" shape:"id"`
	Content    json.RawMessage `json:"content" shape:"text"` // a JSON string, see [Text], or an array of content parts
	Role       string          `json:"role,omitempty"`       // RoleTool
	Attributed
}

// StateSnapshot replaces the state that agent and front end share.
type StateSnapshot struct {
	Snapshot json.RawMessage `json:"snapshot"` // any JSON
	Attributed
}

// StateDelta changes the shared state.
type StateDelta struct {
	Delta json.RawMessage `json:"delta" shape:"patch"` // the operations of RFC 6902
	Attributed
}

// MessagesSnapshot restates the messages of the thread.
type MessagesSnapshot struct {
	Messages []Message `json:"messages"`
	Common
}

// ActivitySnapshot shows an activity of an agent that is not a message.
type ActivitySnapshot struct {
	MessageID    string          `json:"messageId" shape:"id"`
	ActivityType string          `json:"activityType"`
	Content      json.RawMessage `json:"content" shape:"object"`
	Replace      *bool           `json:"replace,omitempty"` // false leaves an activity with this id unchanged; nil and true replace it
	Attributed
}

// ActivityDelta changes the content of an activity.
type ActivityDelta struct {
	MessageID    string          `json:"messageId" shape:"id"`
	ActivityType string          `json:"activityType"`
	Patch        json.RawMessage `json:"patch" shape:"patch"` // the operations of RFC 6902
	Attributed
}

// ReasoningStart opens a span of reasoning. It may have the id of a message in
// it, but the two are different things.
type ReasoningStart struct {
	MessageID string `json:"messageId" shape:"id"`
	Attributed
}

// ReasoningEnd closes a span of reasoning.
type ReasoningEnd struct {
	MessageID string `json:"messageId" shape:"id"`
	Attributed
}

// ReasoningMessageStart opens a reasoning message.
type ReasoningMessageStart struct {
	MessageID string `json:"messageId" shape:"id"`
	Role      string `json:"role"` // RoleReasoning
	Attributed
}

// ReasoningMessageContent appends to a reasoning message.
type ReasoningMessageContent struct {
	MessageID string `json:"messageId" shape:"id"`
	Delta     Piece  `json:"delta"`
	Cuts      []Cut  `json:"cuts,omitempty"`
	Attributed
}

// ReasoningMessageEnd closes a reasoning message.
type ReasoningMessageEnd struct {
	MessageID string `json:"messageId" shape:"id"`
	Attributed
}

// ReasoningMessageChunk is shorthand for start, content and end of a reasoning
// message. The first chunk must have the id; later ones may omit it.
type ReasoningMessageChunk struct {
	MessageID string `json:"messageId,omitempty" shape:"id"`
	Delta     Piece  `json:"delta,omitempty"`
	Attributed
}

// ReasoningEncryptedValue is a value that the model's provider wants back
// unchanged.
type ReasoningEncryptedValue struct {
	Subtype        string `json:"subtype"` // "message" or "tool-call": the kind of EntityID
	EntityID       string `json:"entityId"`
	EncryptedValue string `json:"encryptedValue"`
	Attributed
}

// SubagentStarted begins an invocation of a sub-agent within the run.
type SubagentStarted struct {
	SubagentRunID       string `json:"subagentRunId" shape:"id"` // of this invocation, unique in the run
	Name                string `json:"name"`
	Description         string `json:"description,omitempty"`
	ParentSubagentRunID string `json:"parentSubagentRunId,omitempty" shape:"id"`
	ParentToolCallID    string `json:"parentToolCallId,omitempty"`
	ParentMessageID     string `json:"parentMessageId,omitempty"`
	Common
}

// SubagentFinished ends an invocation of a sub-agent.
type SubagentFinished struct {
	SubagentRunID string          `json:"subagentRunId" shape:"id"`
	Result        json.RawMessage `json:"result,omitempty" shape:"some"`
	Outcome       *Outcome        `json:"outcome,omitempty"` // nil for success
	Common
}

// SubagentError ends an invocation of a sub-agent that failed. The run may
// continue.
type SubagentError struct {
	SubagentRunID string `json:"subagentRunId" shape:"id"`
	Message       string `json:"message"`
	Code          string `json:"code,omitempty"`
	Common
}

// Raw is an event of another system.
type Raw struct {
	Event  json.RawMessage `json:"event"` // any JSON
	Source string          `json:"source,omitempty"`
	Attributed
}

// Custom is an event that an application defines. Names without a vendor prefix
// are reserved.
type Custom struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"` // any JSON; null if nil
	Attributed
}

// An [Outcome] has one of these types.
const (
	OutcomeSuccess   = "success"
	OutcomeInterrupt = "interrupt" // of a run: it waits for the answers to its interrupts
	OutcomeCancelled = "cancelled" // of a run
	OutcomeSuspended = "suspended" // of a sub-agent: a later run may resume it
)

// CodeRunEnded is the code of the SUBAGENT_ERROR that closes a sub-agent when
// its run ends first.
const CodeRunEnded = "run_ended"
