package tapedeck

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// Channels divide the events of a session by kind. The first six are those a
// reader may ask for; [ChannelSession] carries the session's own life and is
// part of every selection.
const (
	ChannelChunks     = "chunks"
	ChannelToolCalls  = "toolCalls"
	ChannelAgentState = "agentState"
	ChannelWorkflow   = "workflow"
	ChannelTerminal   = "terminal"
	ChannelPresence   = "presence"
	ChannelSession    = "session"
)

// MainThread is the thread of an event that names none.
const MainThread = "main"

// An Event is one immutable record of a session, in its native envelope. In
// JSON, unset members are left out, and members keep the order of the fields
// here.
type Event struct {
	Offset     int64           // position in the session, from 0; set by the store
	Type       string          // what happened: an AG-UI event type or a dotted type of ours, see [ChannelOf]
	Channel    string          // set by the store from Type; for an unknown type, as given, or [ChannelAgentState]
	Time       time.Time       // when it happened, UTC, to the millisecond; zero: when it is appended
	Thread     string          // the lane of conversation; "" and [MainThread] are the same
	Invocation string          // the request to an agent that it belongs to; "" for none
	Instance   string          // the agent instance that caused it; "" for none
	Turn       int             // the model call within the invocation, from 1; 0 for none
	Actor      string          // who did it, such as "user:ada" or "agent:coder"; may be empty
	Data       json.RawMessage // a JSON object, members of the type; nil for none
}

// ThreadName returns the thread of e, [MainThread] if it names none.
func (e *Event) ThreadName() string {
	if e.Thread == "" {
		return MainThread
	}
	return e.Thread
}

// Check reports whether e can be appended: a well-formed type, ids and actor,
// and data that is a JSON object in valid UTF-8. It does not look at the order
// of events; see [order.Verifier].
func (e *Event) Check() error {
	if err := CheckID("the event's type", e.Type); err != nil {
		return err
	}
	if err := e.CheckIDs(); err != nil {
		return err
	}
	if e.Turn < 0 {
		return Errorf(Invalid, "the event's turn is %d; it counts from 1", e.Turn)
	}
	if err := CheckName("the event's actor", e.Actor); err != nil {
		return err
	}
	if y := e.Time.UTC().Year(); y < 0 || y > 9999 { // it could be written, but not read
		return Errorf(Invalid, "the event's time is in the year %d", y).WithHint("years have four digits")
	}
	switch {
	case len(e.Data) == 0:
	case !utf8.Valid(e.Data): // encoding/json would let it pass
		return Errorf(Invalid, "the data of %s is not valid UTF-8", e.Type)
	case !bytes.HasPrefix(jsonobj.SkipSpace(e.Data), []byte("{")) || !json.Valid(e.Data):
		return Errorf(Invalid, "the data of %s is not a JSON object", e.Type)
	case len(e.Data) > 2*jsonobj.MaxNesting && jsonobj.Nesting(e.Data) > jsonobj.MaxNesting: // each level has two brackets
		return Errorf(Invalid, "the data of %s is nested more than %d levels deep", e.Type, jsonobj.MaxNesting)
	}
	return nil
}

// CheckIDs reports whether the channel, thread, invocation and instance of e are
// empty or well-formed, see [CheckID].
func (e *Event) CheckIDs() error {
	for _, id := range [...]struct{ what, id string }{
		{"the event's channel", e.Channel}, {"the event's thread", e.Thread},
		{"the event's invocation", e.Invocation}, {"the event's instance", e.Instance},
	} {
		if id.id == "" {
			continue
		}
		if err := CheckID(id.what, id.id); err != nil {
			return err
		}
	}
	return nil
}

// A Record is an event as a store keeps it and as doors send it: its offset and
// its bytes. For a session the bytes are the JSON envelope on one line; for a
// stream, whatever was appended. They are shared by all readers and must not
// be changed.
type Record struct {
	Offset int64
	Data   []byte
}

// Event decodes the record of a session. The event's data is part of the record,
// and no more to be changed than it.
func (r Record) Event() (Event, error) {
	var e Event
	if err := e.decode(r.Data); err != nil {
		return Event{}, Errorf(Internal, "the event at offset %d cannot be read", r.Offset).Because(err)
	}
	return e, nil
}

// Members are members of a JSON object whose values are kept as they are.
type Members map[string]json.RawMessage

// Erased reports whether the payload of e is gone.
func (e *Event) Erased() bool { return string(jsonobj.Member(e.Data, "erased")) == "true" }

// Unpack sets what into points to from the data of e, see [jsonobj.Unpack]. No data is an
// object without members.
func (e *Event) Unpack(into any) bool { return len(e.Data) == 0 || jsonobj.Unpack(e.Data, into) }
