// Package channels translates between events of the log and events in the form of six
// channels, each with its own schema, as the design "Durable Streams" of agent platforms has
// them:
//
//	chunks      id agentId sessionId text turn timestamp
//	toolCalls   id agentId sessionId tool input output status duration
//	presence    userId sessionId cursor lastSeen joinedAt
//	terminal    id sessionId type data source timestamp
//	workflow    id sessionId taskId type payload actor timestamp
//	agentState  agentId sessionId status taskId turn progress message error
//
// A [Translator] makes events of the catalogue of what is published. Every agent has its own
// thread, and its state begins and ends its runs. A [Reader] gives readers the form back.
package channels

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// A Translator turns the events of one request, in order, into those of a session.
type Translator struct {
	Session string
	Runs    []tapedeck.OpenRun                         // the open runs
	Called  func(thread, id string) (Known, error)     // what the log knows of a call
	Begun   func(thread, run string) ([]string, error) // the calls of an open run in the log that have no input yet; nil for none
	NewID   func(prefix string) string                 // nil for [tapedeck.NewID]

	called map[string]Known // the calls of this request, by thread and id
}

// Known is what is known of a call.
type Known int

// A call is unknown until it begins, made when it has its input, and answered when it has a
// result.
const (
	Unknown Known = iota
	Begun
	Made
	Answered
)

// Is reports whether an event that is not in the form of the log is in the form of these
// channels: it names a channel, and has a member that only these schemas have.
func Is(raw []byte) bool {
	names, has := map[string]bool{"id": true, "sessionId": true, "agentId": true, "userId": true}, false
	channel := false
	o := jsonobj.Read(raw)
	for name, _, ok := o.Next(); ok; name, _, ok = o.Next() {
		channel = channel || string(name) == "channel"
		has = has || names[string(name)]
	}
	return channel && !o.Bad && has
}

// IsAt is [Is] for an event that comes to a base URL of this form: its type is none of the
// catalogue.
func IsAt(raw []byte) bool {
	var known bool
	o := jsonobj.Read(raw)
	for name, value, ok := o.Next(); ok; name, value, ok = o.Next() {
		if string(name) == "type" {
			typ := jsonobj.StringOf(value)
			known = tapedeck.ChannelOf(typ) != "" && channelOfType(typ) == ""
		}
	}
	return !known && !o.Bad
}

// Translate returns the events that an event becomes: one that stands for it, which has it as
// rawEvent, and the events that this one implies.
func (t *Translator) Translate(raw []byte) ([]tapedeck.Event, error) {
	var tidy bytes.Buffer // as the log keeps it
	if err := json.Compact(&tidy, raw); err != nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the event is not JSON").Because(err)
	}
	e, err := t.read(tidy.Bytes())
	if err != nil {
		return nil, err
	}
	translate := map[string]func(*Translator, *event) ([]tapedeck.Event, error){
		tapedeck.ChannelChunks: (*Translator).chunk, tapedeck.ChannelToolCalls: (*Translator).toolCall,
		tapedeck.ChannelAgentState: (*Translator).agentState, tapedeck.ChannelPresence: (*Translator).presence,
		tapedeck.ChannelTerminal: (*Translator).terminal, tapedeck.ChannelWorkflow: (*Translator).workflow,
	}[e.Channel]
	if translate == nil {
		err := tapedeck.Errorf(tapedeck.Invalid, "there is no channel %s", jsonobj.Quote(e.Channel))
		if e.Channel == "" {
			err = tapedeck.Errorf(tapedeck.Invalid, "the event does not name its channel")
		}
		return nil, err.WithHint("the channels are chunks, toolCalls, agentState, workflow, terminal and presence")
	}
	out, err := translate(t, e)
	for i := range out {
		if out[i].Time, out[i].Turn = e.at, e.Turn; err == nil {
			err = out[i].Check()
		}
	}
	return out, err
}

// read reads an event and checks what all channels have.
func (t *Translator) read(raw []byte) (*event, error) {
	e, err := parse(raw)
	if err != nil {
		return nil, err
	}
	if e.SessionID != "" && e.SessionID != t.Session {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the event is of session %s, not of %s", jsonobj.Quote(e.SessionID), t.Session)
	}
	if e.AgentID != "" {
		if err := tapedeck.CheckID("the agentId", e.AgentID); err != nil {
			return nil, err
		}
	}
	for _, m := range required[e.Channel] {
		if !m.given(e) {
			return nil, missing(e, m.name)
		}
	}
	if e.Turn < 0 {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the turn of an event is a whole number from 0, not %d", e.Turn)
	}
	return e, nil
}

// A member is one that an event must have.
type member struct {
	name  string
	given func(*event) bool
}

var (
	needsID     = member{"id", func(e *event) bool { return e.ID != "" }}
	needsAgent  = member{"agentId", func(e *event) bool { return e.AgentID != "" }}
	needsStatus = member{"status", func(e *event) bool { return e.Status != "" }}
	needsType   = member{"type", func(e *event) bool { return e.Type != "" }}
)

// required has the members without which an event of a channel says nothing. A call needs its
// tool when it begins only.
var required = map[string][]member{
	tapedeck.ChannelChunks:     {needsID, needsAgent, {"text", func(e *event) bool { return e.says }}},
	tapedeck.ChannelToolCalls:  {needsID, needsAgent, needsStatus},
	tapedeck.ChannelAgentState: {needsAgent, needsStatus},
	tapedeck.ChannelPresence:   {{"userId", func(e *event) bool { return e.UserID != "" }}},
	tapedeck.ChannelTerminal:   {needsID, needsType, {"data", func(e *event) bool { return given(e.Data) }}},
	tapedeck.ChannelWorkflow:   {needsID, needsType, {"taskId", func(e *event) bool { return e.TaskID != "" }}},
}

// missing returns the error of an event without a required member.
func missing(e *event, member string) error {
	return tapedeck.Errorf(tapedeck.Invalid, "the event of the channel %s has no %s", e.Channel, member)
}

func (t *Translator) newID(prefix string) string {
	if t.NewID != nil {
		return t.NewID(prefix)
	}
	return tapedeck.NewID(prefix)
}

// messageID returns the id of the message that has the chunks of a turn.
func messageID(run string, turn int) string { return run + "." + strconv.Itoa(turn) }
