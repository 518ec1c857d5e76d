// Package channels reads events in the form of six channels, each with its own schema,
// as the design "Durable Streams" of agent platforms has them:
//
//	chunks      id agentId sessionId text turn timestamp
//	toolCalls   id agentId sessionId tool input output status duration
//	presence    userId sessionId cursor lastSeen joinedAt
//	terminal    id sessionId type data source timestamp
//	workflow    id sessionId taskId type payload actor timestamp
//	agentState  agentId sessionId status taskId turn progress message error
//
// Each event becomes events of the catalogue. Every agent has its own thread, and its
// state begins and ends its runs.
package channels

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A Translator turns the events of one request, in order, into those of a session.
type Translator struct {
	Session string
	Runs    []tapedeck.OpenRun                         // the open runs
	Called  func(thread, id string) (Known, error)     // what the log knows of a call
	Begun   func(thread, run string) ([]string, error) // the calls of an open run in the log that have no input yet; nil for none
	NewID   func(prefix string) string                 // nil for [tapedeck.NewID]

	// Conflict is the reason why the last event must not be appended, nil if there is none.
	// Translate does not return it as an error, because the event may be a producer's
	// repeated append, which the log accepts.
	Conflict error

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

// An event has the members of all schemas.
type event struct {
	Channel   string          `json:"channel"`
	ID        string          `json:"id"`
	AgentID   string          `json:"agentId"`
	SessionID string          `json:"sessionId"`
	UserID    string          `json:"userId"`
	Text      payload.Piece   `json:"text"`
	Turn      int             `json:"turn"`
	Timestamp json.RawMessage `json:"timestamp"`
	Tool      string          `json:"tool"`
	Input     json.RawMessage `json:"input"`
	Output    json.RawMessage `json:"output"`
	Status    string          `json:"status"`
	Duration  *float64        `json:"duration"`
	Cursor    json.RawMessage `json:"cursor"`
	LastSeen  json.RawMessage `json:"lastSeen"`
	JoinedAt  json.RawMessage `json:"joinedAt"`
	Type      string          `json:"type"`
	Data      json.RawMessage `json:"data"`
	Source    string          `json:"source"`
	TaskID    string          `json:"taskId"`
	Payload   json.RawMessage `json:"payload"`
	Actor     string          `json:"actor"`
	Progress  json.RawMessage `json:"progress"`
	Message   string          `json:"message"`
	Error     json.RawMessage `json:"error"`

	raw json.RawMessage
	at  time.Time
}

// Is reports whether an event that is not in the form of the log is in the form of these
// channels: it names a channel, and has a member that only these schemas have.
func Is(raw []byte) bool {
	var e map[string]json.RawMessage
	if json.Unmarshal(raw, &e) != nil || e["channel"] == nil {
		return false
	}
	for _, name := range []string{"id", "sessionId", "agentId", "userId"} {
		if e[name] != nil {
			return true
		}
	}
	return false
}

// Translate returns the events that an event becomes.
func (t *Translator) Translate(raw []byte) ([]tapedeck.Event, error) {
	t.Conflict = nil
	e, err := t.read(raw)
	if err != nil {
		return nil, err
	}
	translate := map[string]func(*Translator, *event) ([]tapedeck.Event, error){
		tapedeck.ChannelChunks: (*Translator).chunk, tapedeck.ChannelToolCalls: (*Translator).toolCall,
		tapedeck.ChannelAgentState: (*Translator).agentState, tapedeck.ChannelPresence: (*Translator).presence,
		tapedeck.ChannelTerminal: (*Translator).terminal, tapedeck.ChannelWorkflow: (*Translator).workflow,
	}[e.Channel]
	if translate == nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "there is no channel %q", e.Channel).
			WithHint("the channels are chunks, toolCalls, agentState, workflow, terminal and presence")
	}
	out, err := translate(t, e)
	for i := range out {
		out[i].Time, out[i].Turn = e.at, max(e.Turn, 0)
	}
	return out, err
}

// read reads an event. The members of its schema may be at the top or within data.
func (t *Translator) read(raw []byte) (*event, error) {
	e := &event{raw: raw}
	err := json.Unmarshal(raw, e)
	if err == nil && strings.HasPrefix(string(e.Data), "{") {
		outer := *e
		err = json.Unmarshal(e.Data, e)
		e.Channel = outer.Channel
	}
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the event of the channel %q has a member of the wrong type", e.Channel).Because(err)
	}
	if e.SessionID != "" && e.SessionID != t.Session {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the event is of session %q, not of %s", e.SessionID, t.Session)
	}
	if e.AgentID != "" {
		if err := tapedeck.CheckID("the agentId", e.AgentID); err != nil {
			return nil, err
		}
	}
	e.at, err = timeOf(e.Timestamp)
	return e, err
}

// timeOf reads a time: RFC 3339, or seconds or milliseconds since 1970.
func timeOf(raw json.RawMessage) (time.Time, error) {
	var n float64
	var at time.Time
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return at, nil
	case json.Unmarshal(raw, &n) == nil && n >= 0 && n < 1e11:
		return time.UnixMilli(int64(n * 1000)).UTC(), nil
	case json.Unmarshal(raw, &n) == nil && n >= 0 && n < 1e15:
		return time.UnixMilli(int64(n)).UTC(), nil
	case json.Unmarshal(raw, &at) == nil:
		return at, nil
	}
	return at, tapedeck.Errorf(tapedeck.Invalid, "the timestamp %.40s is neither a time nor milliseconds since 1970", raw)
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
