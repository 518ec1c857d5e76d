package tapedeck

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// Channels divide the events of a session by kind. A reader may select any of
// the first six. [ChannelSession] has the events about the session itself, and
// is part of every selection.
const (
	ChannelChunks     = "chunks"
	ChannelToolCalls  = "toolCalls"
	ChannelAgentState = "agentState"
	ChannelWorkflow   = "workflow"
	ChannelTerminal   = "terminal"
	ChannelPresence   = "presence"
	ChannelSession    = "session"
)

// MainThread is the thread of an event that does not name one.
const MainThread = "main"

// An Event is one immutable record of a session, in its native envelope. The
// JSON leaves out unset members and keeps the order of the fields here.
type Event struct {
	Offset     int64           // position in the session, from 0; set by the store
	Type       string          // an AG-UI event type or one of Tapedeck's dotted types, see [ChannelOf]
	Channel    string          // set by the store from Type; an unknown type keeps the given one, or gets [ChannelAgentState]
	Time       time.Time       // when it happened, in UTC with milliseconds; zero means the time of the append
	Thread     string          // the lane of conversation; "" and [MainThread] are the same
	Invocation string          // the request to an agent that it belongs to; "" if none
	Instance   string          // the agent instance that caused it; "" if none
	Turn       int             // the model call within the invocation, from 1; 0 if none
	Actor      string          // the user, agent or program that caused it, such as "user:ada" or "agent:coder"; may be empty
	Data       json.RawMessage // a JSON object with the members of the type; nil if it has none
}

// ThreadName returns the thread of e, [MainThread] if e does not name one.
func (e *Event) ThreadName() string {
	if e.Thread == "" {
		return MainThread
	}
	return e.Thread
}

// Check reports whether e can be appended: its type, ids and actor must be
// well-formed, and its data must be a JSON object in valid UTF-8. It does not
// check the order of events; see package order.
func (e *Event) Check() error {
	if err := CheckID("the event's type", e.Type); err != nil {
		return err
	}
	if err := e.checkIDs(); err != nil {
		return err
	}
	if e.Turn < 0 {
		return Errorf(Invalid, "the event's turn is %d; it counts from 1", e.Turn)
	}
	if err := CheckName("the event's actor", e.Actor); err != nil {
		return err
	}
	if y := e.Time.UTC().Year(); y < 0 || y > 9999 { // it could be encoded, but not decoded
		return Errorf(Invalid, "the event's time is in the year %d", y).WithHint("years have four digits")
	}
	switch {
	case len(e.Data) == 0:
	case !utf8.Valid(e.Data): // encoding/json would accept it
		return Errorf(Invalid, "the data of %s is not valid UTF-8", e.Type)
	case !bytes.HasPrefix(jsonobj.SkipSpace(e.Data), []byte("{")) || !json.Valid(e.Data):
		return e.badData()
	case len(e.Data) > 2*jsonobj.MaxNesting && jsonobj.Nesting(e.Data) > jsonobj.MaxNesting: // each level has two brackets
		return Errorf(Invalid, "the data of %s is nested more than %d levels deep", e.Type, jsonobj.MaxNesting)
	}
	return nil
}

// badData returns the error of data that is not a JSON object. A program that fills a raw
// member often forgets the quotes of a text, so the error names that member.
func (e *Event) badData() error {
	err := Errorf(Invalid, "the data of %s is not a JSON object", e.Type)
	d := json.NewDecoder(bytes.NewReader(e.Data))
	if t, _ := d.Token(); t != json.Delim('{') {
		return err
	}
	for d.More() {
		name, _ := d.Token()
		if _, ok := name.(string); !ok {
			break
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return Errorf(Invalid, "the data of %s is not a JSON object: the value of its member %q is not JSON", e.Type, name).
				WithHint("a text is a JSON string, with quotes; in Go, payload.Text returns one")
		}
	}
	return err
}

// checkIDs reports whether the channel, thread, invocation and instance of e
// are empty or well-formed, see [CheckID].
func (e *Event) checkIDs() error {
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

// A Record is an event in the form in which stores keep it and protocols send
// it: its offset and its bytes. The bytes of a session's record are the JSON
// envelope on one line; those of a stream's record are whatever was appended.
// All readers share them, so they must not be changed.
type Record struct {
	Offset int64
	Data   []byte
}

// Event decodes the record of a session. The event's data shares memory with
// the record, so it must not be changed, either.
func (r Record) Event() (Event, error) {
	var e Event
	if err := e.decode(r.Data); err != nil {
		return Event{}, Errorf(Internal, "the event at offset %d cannot be read", r.Offset).Because(err)
	}
	return e, nil
}

// Members are members of a JSON object. Their values keep their spelling.
type Members map[string]json.RawMessage

// Erased reports whether the payload of e was erased.
func (e *Event) Erased() bool { return string(jsonobj.Member(e.Data, "erased")) == "true" }

// Unpack sets the struct that into points to from the data of e, see
// [jsonobj.Unpack]. No data counts as an object without members.
func (e *Event) Unpack(into any) bool { return len(e.Data) == 0 || jsonobj.Unpack(e.Data, into) }
