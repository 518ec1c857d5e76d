package tapedeck

import (
	"encoding/json"
	"reflect"
)

// A Payload is the data of an event as a struct: the data of a [TextMessageStart]
// is a [TextMessageStartData], and so for every type of the catalogue. Data of a
// type that is not in it is an [UnknownData].
//
// Members of the data for which the struct has no field are kept in Extra, and
// [NewEvent] writes them again. encoding/json does not know of Extra.
type Payload interface{ payload() }

// Common has the members that the data of any event may have.
type Common struct {
	Timestamp int64           `json:"timestamp,omitempty"`             // the producer's own time, in milliseconds since 1970; 0 for none
	Metadata  Members         `json:"metadata,omitempty"`              // of anybody's, by name of vendor; ours is under [VendorKey]
	RawEvent  json.RawMessage `json:"rawEvent,omitempty" shape:"some"` // what the producer made the event of; nil for none
	Extra     Members         `json:"-"`                               // members that the struct has no field for
}

// Attributed has the members of an event that may be a subagent's.
type Attributed struct {
	SubagentRunID string `json:"subagentRunId,omitempty" shape:"id"` // the invocation of the subagent; "" for the agent itself
	Common
}

func (Common) payload() {}

// UnknownData is the data of an event of a type that we do not know, untouched.
type UnknownData struct {
	Type string
	Data json.RawMessage // an object; nil for none
}

func (UnknownData) payload() {}

// catalogue has all types that we know, in the order in which docs/events.md
// shows them.
var catalogue = []struct {
	name string
	data Payload
}{
	{MessageAdded, MessageAddedData{}},
	{TextMessageStart, TextMessageStartData{}},
	{TextMessageContent, TextMessageContentData{}},
	{TextMessageEnd, TextMessageEndData{}},
	{TextMessageChunk, TextMessageChunkData{}},
	{ReasoningStart, ReasoningStartData{}},
	{ReasoningMessageStart, ReasoningMessageStartData{}},
	{ReasoningMessageContent, ReasoningMessageContentData{}},
	{ReasoningMessageEnd, ReasoningMessageEndData{}},
	{ReasoningMessageChunk, ReasoningMessageChunkData{}},
	{ReasoningEnd, ReasoningEndData{}},
	{ReasoningEncryptedValue, ReasoningEncryptedValueData{}},

	{ToolCallStart, ToolCallStartData{}},
	{ToolCallArgs, ToolCallArgsData{}},
	{ToolCallEnd, ToolCallEndData{}},
	{ToolCallChunk, ToolCallChunkData{}},
	{ToolCallResult, ToolCallResultData{}},
	{PermissionRequested, PermissionRequestedData{}},
	{PermissionAnswered, PermissionAnsweredData{}},

	{RunStarted, RunStartedData{}},
	{RunFinished, RunFinishedData{}},
	{RunError, RunErrorData{}},
	{StepStarted, StepStartedData{}},
	{StepFinished, StepFinishedData{}},
	{StateSnapshot, StateSnapshotData{}},
	{StateDelta, StateDeltaData{}},
	{MessagesSnapshot, MessagesSnapshotData{}},
	{ActivitySnapshot, ActivitySnapshotData{}},
	{ActivityDelta, ActivityDeltaData{}},
	{SubagentStarted, SubagentStartedData{}},
	{SubagentFinished, SubagentFinishedData{}},
	{SubagentError, SubagentErrorData{}},
	{Raw, RawData{}},
	{Custom, CustomData{}},
	{InstanceStarted, InstanceStartedData{}},
	{PlanUpdated, PlanUpdatedData{}},
	{AgentStarted, AgentStartedData{}},
	{AgentLinked, AgentLinkedData{}},
	{UsageReported, UsageReportedData{}},

	{WorkflowStarted, WorkflowStartedData{}},
	{WorkflowEntered, WorkflowEnteredData{}},
	{WorkflowLeft, WorkflowLeftData{}},
	{WorkflowFailed, WorkflowFailedData{}},
	{WorkflowVariables, WorkflowVariablesData{}},
	{WorkflowEnded, WorkflowEndedData{}},

	{TerminalOutput, TerminalOutputData{}},
	{TerminalInput, TerminalInputData{}},
	{TerminalResize, TerminalResizeData{}},
	{TerminalExit, TerminalExitData{}},

	{PresenceJoined, PresenceJoinedData{}},
	{PresenceLeft, PresenceLeftData{}},
	{PresenceMoved, PresenceMovedData{}},

	{SessionCreated, SessionCreatedData{}},
	{SessionRenamed, SessionRenamedData{}},
	{SessionRewound, SessionRewoundData{}},
	{SessionCleared, SessionClearedData{}},
	{SessionOverwritten, SessionOverwrittenData{}},
	{SessionForked, SessionForkedData{}},
	{SessionImported, SessionImportedData{}},
	{SessionRedacted, SessionRedactedData{}},
	{SessionClosed, SessionClosedData{}},
	{FeedbackAdded, FeedbackAddedData{}},
	{BookmarkAdded, BookmarkAddedData{}},
}

// An eventType is what we know of a type.
type eventType struct {
	name   string
	what   string // the data, in errors
	data   reflect.Type
	layout *layout
}

var typeByName, typeByData = indexTypes()

func indexTypes() (map[string]*eventType, map[reflect.Type]*eventType) {
	byName, byData := map[string]*eventType{}, map[reflect.Type]*eventType{}
	for _, c := range catalogue {
		t := reflect.TypeOf(c.data)
		e := &eventType{name: c.name, what: "data of " + c.name, data: t, layout: layoutOf(t)}
		byName[c.name], byData[t] = e, e
	}
	return byName, byData
}

// NewEvent returns an event with the type and the data of p, which is one of the
// structs of the catalogue or a pointer to one. Raw members are not looked at;
// [Event.Check] says whether they are JSON.
func NewEvent(p Payload) Event {
	v := reflect.Indirect(reflect.ValueOf(p))
	if u, ok := v.Interface().(UnknownData); ok {
		return Event{Type: u.Type, Data: u.Data}
	}
	t := typeByData[v.Type()]
	if t == nil {
		panic("tapedeck: " + v.Type().String() + " is the data of no event type") // the caller's mistake, at the first call
	}
	return Event{Type: t.name, Data: t.layout.encode(make([]byte, 0, 128), v)}
}

// Decode returns the data of e as the struct of its type, not a pointer to it.
// Data of an unknown type is no error, but an [UnknownData]. The error is
// [Invalid] when a member has not the shape that its type asks for; whether all
// members are there is for [CheckData] to say.
func Decode(e Event) (Payload, error) {
	t := typeByName[e.Type]
	if t == nil {
		return UnknownData{Type: e.Type, Data: e.Data}, nil
	}
	v := reflect.New(t.data).Elem()
	if err := t.decode(e.Data, v); err != nil {
		return nil, err
	}
	return v.Interface().(Payload), nil
}

// DecodeAs returns the data of e as a T. It is [Invalid] if e has another type.
func DecodeAs[T Payload](e Event) (T, error) {
	var p T
	v := reflect.ValueOf(&p).Elem()
	t := typeByName[e.Type]
	if t == nil || t.data != v.Type() {
		return p, Errorf(Invalid, "a %s has no %s", e.Type, v.Type().Name())
	}
	return p, t.decode(e.Data, v)
}

func (t *eventType) decode(data json.RawMessage, v reflect.Value) error {
	if err := t.layout.decode(data, v); err != nil {
		return Errorf(Invalid, "the data of %s cannot be read: %s", t.name, err).Because(err)
	}
	return nil
}
