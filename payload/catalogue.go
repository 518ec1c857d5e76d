// Package payload has the typed data of every event in the catalogue: the types of
// AG-UI and those of Tapedeck. It encodes them, decodes them, and checks the data of
// events that come from outside.
package payload

import (
	"encoding/json"
	"reflect"

	"github.com/tapedeck/tapedeck"
)

// A Payload is the data of an event as a struct: the data of a [tapedeck.TextMessageStart]
// is a [TextMessageStart], and so for every type of the catalogue. Data of a
// type that is not in it is an [Unknown].
//
// Members of the data for which the struct has no field are kept in Extra, and
// [NewEvent] writes them again. encoding/json does not know of Extra.
type Payload interface{ payload() }

// Common has the members that the data of any event may have.
type Common struct {
	Timestamp int64            `json:"timestamp,omitempty"`             // the producer's own time, in milliseconds since 1970; 0 for none
	Metadata  tapedeck.Members `json:"metadata,omitempty"`              // of anybody's, by name of vendor; ours is under [tapedeck.VendorKey]
	RawEvent  json.RawMessage  `json:"rawEvent,omitempty" shape:"some"` // what the producer made the event of; nil for none
	Extra     tapedeck.Members `json:"-"`                               // members that the struct has no field for
}

// Attributed has the members of an event that may be a subagent's.
type Attributed struct {
	SubagentRunID string `json:"subagentRunId,omitempty" shape:"id"` // the invocation of the subagent; "" for the agent itself
	Common
}

func (Common) payload() {}

// UnknownData is the data of an event of a type that we do not know, untouched.
type Unknown struct {
	Type string
	Data json.RawMessage // an object; nil for none
}

func (Unknown) payload() {}

// catalogue has all types that we know, in the order in which docs/events.md
// shows them.
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
	{tapedeck.WorkflowLeft, WorkflowLeft{}},
	{tapedeck.WorkflowFailed, WorkflowFailed{}},
	{tapedeck.WorkflowVariables, WorkflowVariables{}},
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
	{tapedeck.SessionForked, SessionForked{}},
	{tapedeck.SessionImported, SessionImported{}},
	{tapedeck.SessionRedacted, SessionRedacted{}},
	{tapedeck.SessionClosed, SessionClosed{}},
	{tapedeck.FeedbackAdded, FeedbackAdded{}},
	{tapedeck.BookmarkAdded, BookmarkAdded{}},
}

// An eventType is what we know of a type.
type eventType struct {
	name   string
	what   string // the data, in errors
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

// NewEvent returns an event with the type and the data of p, which is one of the
// structs of the catalogue or a pointer to one. Raw members are not looked at;
// [tapedeck.Event.Check] says whether they are JSON.
func NewEvent(p Payload) tapedeck.Event {
	v := reflect.Indirect(reflect.ValueOf(p))
	if u, ok := v.Interface().(Unknown); ok {
		return tapedeck.Event{Type: u.Type, Data: u.Data}
	}
	t := typeBy[v.Type()]
	if t == nil {
		panic("tapedeck: " + v.Type().String() + " is the data of no event type") // the caller's mistake, at the first call
	}
	return tapedeck.Event{Type: t.name, Data: t.layout.encode(make([]byte, 0, 128), v)}
}

// Decode returns the data of e as the struct of its type, not a pointer to it.
// Data of an unknown type is no error, but an [Unknown]. The error is
// [tapedeck.Invalid] when a member has not the shape that its type asks for; whether all
// members are there is for [CheckData] to say.
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

// DecodeAs returns the data of e as a T. It is [tapedeck.Invalid] if e has another type.
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
