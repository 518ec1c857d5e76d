// Package payload has the typed data of every event in the catalogue: AG-UI's
// types and Tapedeck's. It encodes them, decodes them, and checks the data of
// events from outside.
package payload

import (
	"encoding/json"
	"reflect"

	"github.com/tapedeck/tapedeck"
)

// A Payload is the data of an event as a struct. Each type of the catalogue has
// a struct of its name: the data of a [tapedeck.TextMessageStart] is a
// [TextMessageStart]. Data of an unknown type is an [Unknown].
//
// Members without a field are kept in Extra, and [NewEvent] encodes them again.
// encoding/json ignores Extra.
type Payload interface{ payload() }

// Common has the members that the data of any event may have.
// [tapedeck.MetaOf] reads the members of Tapedeck in the metadata.
type Common struct {
	Timestamp int64            `json:"timestamp,omitempty"`             // the producer's own time, in milliseconds since 1970; 0 if none
	Metadata  tapedeck.Members `json:"metadata,omitempty"`              // by name of vendor; those of Tapedeck are under "tapedeck"
	RawEvent  json.RawMessage  `json:"rawEvent,omitempty" shape:"some"` // the event from which the producer made this one; nil if none
	Extra     tapedeck.Members `json:"-"`                               // members without a field
}

// Attributed has the members of an event that may belong to a sub-agent.
type Attributed struct {
	SubagentRunID string `json:"subagentRunId,omitempty" shape:"id"` // the invocation of the sub-agent; "" for the agent itself
	Common
}

func (Common) payload() {}

// Unknown is the data of an event of an unknown type, unchanged.
type Unknown struct {
	Type string
	Data json.RawMessage // an object; nil if none
}

func (Unknown) payload() {}

// catalogue has all known types, in the order of docs/events.md.
var catalogue = []struct {
	name string
	data Payload
}{
	{tapedeck.MessageAdded, MessageAdded{}},
	{tapedeck.TextMessageStart, TextMessageStart{}},
	{tapedeck.TextMessageContent, TextMessageContent{}},
	{tapedeck.TextMessageEnd, TextMessageEnd{}},
	{tapedeck.TextMessageChunk, TextMessageChunk{}},
	{tapedeck.ReasoningStart, ReasoningStart{}},
	{tapedeck.ReasoningMessageStart, ReasoningMessageStart{}},
	{tapedeck.ReasoningMessageContent, ReasoningMessageContent{}},
	{tapedeck.ReasoningMessageEnd, ReasoningMessageEnd{}},
	{tapedeck.ReasoningMessageChunk, ReasoningMessageChunk{}},
	{tapedeck.ReasoningEnd, ReasoningEnd{}},
	{tapedeck.ReasoningEncryptedValue, ReasoningEncryptedValue{}},

	{tapedeck.ToolCallStart, ToolCallStart{}},
	{tapedeck.ToolCallArgs, ToolCallArgs{}},
	{tapedeck.ToolCallEnd, ToolCallEnd{}},
	{tapedeck.ToolCallChunk, ToolCallChunk{}},
	{tapedeck.ToolCallResult, ToolCallResult{}},
	{tapedeck.PermissionRequested, PermissionRequested{}},
	{tapedeck.PermissionAnswered, PermissionAnswered{}},

	{tapedeck.RunStarted, RunStarted{}},
	{tapedeck.RunFinished, RunFinished{}},
	{tapedeck.RunError, RunError{}},
	{tapedeck.StepStarted, StepStarted{}},
	{tapedeck.StepFinished, StepFinished{}},
	{tapedeck.StateSnapshot, StateSnapshot{}},
	{tapedeck.StateDelta, StateDelta{}},
	{tapedeck.MessagesSnapshot, MessagesSnapshot{}},
	{tapedeck.ActivitySnapshot, ActivitySnapshot{}},
	{tapedeck.ActivityDelta, ActivityDelta{}},
	{tapedeck.SubagentStarted, SubagentStarted{}},
	{tapedeck.SubagentFinished, SubagentFinished{}},
	{tapedeck.SubagentError, SubagentError{}},
	{tapedeck.Raw, Raw{}},
	{tapedeck.Custom, Custom{}},
	{tapedeck.InstanceStarted, InstanceStarted{}},
	{tapedeck.PlanUpdated, PlanUpdated{}},
	{tapedeck.AgentStarted, AgentStarted{}},
	{tapedeck.AgentLinked, AgentLinked{}},
	{tapedeck.UsageReported, UsageReported{}},

	{tapedeck.WorkflowStarted, WorkflowStarted{}},
	{tapedeck.WorkflowEntered, WorkflowEntered{}},
	{tapedeck.WorkflowWaiting, WorkflowWaiting{}},
	{tapedeck.WorkflowCaught, WorkflowCaught{}},
	{tapedeck.WorkflowLeft, WorkflowLeft{}},
	{tapedeck.WorkflowFailed, WorkflowFailed{}},
	{tapedeck.WorkflowVariables, WorkflowVariables{}},
	{tapedeck.WorkflowMessage, WorkflowMessage{}},
	{tapedeck.WorkflowEnded, WorkflowEnded{}},

	{tapedeck.TerminalOutput, TerminalOutput{}},
	{tapedeck.TerminalInput, TerminalInput{}},
	{tapedeck.TerminalResize, TerminalResize{}},
	{tapedeck.TerminalExit, TerminalExit{}},

	{tapedeck.PresenceJoined, PresenceJoined{}},
	{tapedeck.PresenceLeft, PresenceLeft{}},
	{tapedeck.PresenceMoved, PresenceMoved{}},

	{tapedeck.SessionCreated, SessionCreated{}},
	{tapedeck.SessionRenamed, SessionRenamed{}},
	{tapedeck.SessionRewound, SessionRewound{}},
	{tapedeck.SessionCleared, SessionCleared{}},
	{tapedeck.SessionOverwritten, SessionOverwritten{}},
	{tapedeck.AttemptSuperseded, AttemptSuperseded{}},
	{tapedeck.SessionForked, SessionForked{}},
	{tapedeck.SessionImported, SessionImported{}},
	{tapedeck.SessionRedacted, SessionRedacted{}},
	{tapedeck.SessionClosed, SessionClosed{}},
	{tapedeck.FeedbackAdded, FeedbackAdded{}},
	{tapedeck.BookmarkAdded, BookmarkAdded{}},

	{TypeInputQueued, InputQueued{}},
	{TypeInputMoved, InputMoved{}},
	{TypeInputSteered, InputSteered{}},
	{TypeInputStarted, InputStarted{}},
	{TypeInputWithdrawn, InputWithdrawn{}},
}

// An eventType is an entry of the catalogue, indexed for use.
type eventType struct {
	name   string
	what   string // how errors call the data
	data   reflect.Type
	layout *layout
}

var typeByName, typeBy = indexTypes()

func indexTypes() (map[string]*eventType, map[reflect.Type]*eventType) {
	byName, byData := map[string]*eventType{}, map[reflect.Type]*eventType{}
	for _, c := range catalogue {
		t := reflect.TypeOf(c.data)
		e := &eventType{name: c.name, what: "data of " + c.name, data: t, layout: layoutOf(t)}
		byName[c.name], byData[t] = e, e
	}
	return byName, byData
}

// NewEvent returns an event with the type and the data of p. p must be a struct
// of the catalogue or a pointer to one; otherwise NewEvent panics. It does not
// check raw members: [tapedeck.Event.Check] reports whether they are JSON.
func NewEvent(p Payload) tapedeck.Event {
	v := reflect.Indirect(reflect.ValueOf(p))
	if u, ok := v.Interface().(Unknown); ok {
		return tapedeck.Event{Type: u.Type, Data: u.Data}
	}
	t := typeBy[v.Type()]
	if t == nil {
		panic("tapedeck: " + v.Type().String() + " is the data of no event type") // a programming error; it shows at the first call
	}
	return tapedeck.Event{Type: t.name, Data: t.layout.encode(make([]byte, 0, 128), v)}
}

// Decode returns the data of e as the struct of its type, not as a pointer. An
// unknown type gives an [Unknown]. The error is [tapedeck.Invalid] if a member
// does not have the shape of its type. Decode does not check whether required
// members exist; see [CheckData].
func Decode(e tapedeck.Event) (Payload, error) {
	t := typeByName[e.Type]
	if t == nil {
		return Unknown{Type: e.Type, Data: e.Data}, nil
	}
	v := reflect.New(t.data).Elem()
	if err := t.decode(e.Data, v); err != nil {
		return nil, err
	}
	return v.Interface().(Payload), nil
}

// DecodeAs returns the data of e as a T. The error is [tapedeck.Invalid] if e
// has another type.
func DecodeAs[T Payload](e tapedeck.Event) (T, error) {
	var p T
	v := reflect.ValueOf(&p).Elem()
	t := typeByName[e.Type]
	if t == nil || t.data != v.Type() {
		return p, tapedeck.Errorf(tapedeck.Invalid, "a %s has no %s", e.Type, v.Type().Name())
	}
	return p, t.decode(e.Data, v)
}

func (t *eventType) decode(data json.RawMessage, v reflect.Value) error {
	if err := t.layout.decode(data, v); err != nil {
		return tapedeck.Errorf(tapedeck.Invalid, "the data of %s cannot be read: %s", t.name, err).Because(err)
	}
	return nil
}
