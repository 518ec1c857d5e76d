package channels

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// An event has the members of all schemas, as they are published. The members are beside
// channel or, in an envelope, in the object data.
type event struct {
	Channel   string
	Type      string // of a terminal or a workflow; of any other event its envelope's, or "left" of a user
	ID        string
	AgentID   string
	SessionID string
	UserID    string
	Text      payload.Piece
	says      bool // Text is given; it may be empty
	Turn      int
	Timestamp json.RawMessage
	Tool      string
	Input     json.RawMessage
	Output    json.RawMessage
	Status    string
	Duration  *float64
	Cursor    json.RawMessage
	LastSeen  json.RawMessage
	JoinedAt  json.RawMessage
	Data      json.RawMessage // of a terminal
	Source    string
	TaskID    string
	Payload   json.RawMessage
	Actor     string
	Message   string
	Error     json.RawMessage

	raw      json.RawMessage
	envelope json.RawMessage // the object data; nil if the members are beside channel
	at       time.Time
}

// parse reads an event. Names are compared exactly, and a name comes once: readers that
// differ in that would see another event than the log has.
func parse(raw []byte) (*event, error) {
	e := &event{raw: raw}
	if err := eachMember(raw, e.set); err != nil {
		return nil, err
	}
	switch e.Channel {
	case "":
		e.Channel = channelOfType(e.Type)
	case agentChannel:
		e.Channel = tapedeck.ChannelAgentState
	}
	if inner := e.Data; e.isEnvelope() {
		e.Data, e.envelope = nil, inner
		if err := eachMember(inner, func(name string, value []byte) error {
			if name == "channel" {
				return nil // that of the envelope counts
			}
			return e.set(name, value)
		}); err != nil {
			return nil, err
		}
	}
	var err error
	e.at, err = timeOf("timestamp", e.Timestamp)
	return e, err
}

// channelOfType returns the channel of an event that names none: its type is then such as rows
// have, or the name of a channel. It is "" for other types.
func channelOfType(typ string) string {
	switch typ {
	case tapedeck.ChannelChunks, "chunk":
		return tapedeck.ChannelChunks
	case tapedeck.ChannelToolCalls, "tool":
		return tapedeck.ChannelToolCalls
	case tapedeck.ChannelAgentState, agentChannel, "started", "complete", "error", "cancelled":
		return tapedeck.ChannelAgentState
	case tapedeck.ChannelPresence, tapedeck.ChannelTerminal, tapedeck.ChannelWorkflow:
		return typ
	}
	return ""
}

// agentChannel is a second name of the channel agentState.
const agentChannel = "agent"

// isEnvelope reports whether data has the members of the schema. That of a terminal may be an
// object itself: then others of its members are beside it.
func (e *event) isEnvelope() bool {
	if !strings.HasPrefix(string(e.Data), "{") {
		return false
	}
	return e.Channel != tapedeck.ChannelTerminal || e.SessionID == "" && e.Source == "" && jsonobj.Member(e.Data, "data") != nil
}

// eachMember calls f with each member of an object, which is part of valid JSON.
func eachMember(object []byte, f func(name string, value []byte) error) error {
	names := make([]string, 0, 16)
	var seen map[string]bool // of an object with more members: each is compared with few others
	o := jsonobj.Read(object)
	for name, value, ok := o.Next(); ok; name, value, ok = o.Next() {
		n := string(name)
		if seen[n] || slices.Contains(names, n) {
			return tapedeck.Errorf(tapedeck.Invalid, "the event has two members %s", jsonobj.Quote(n))
		}
		if len(names) < cap(names) {
			names = append(names, n)
		} else {
			put(&seen, n, true)
		}
		if err := f(n, value); err != nil {
			return err
		}
	}
	if o.Bad {
		return tapedeck.Errorf(tapedeck.Invalid, "the event is not a JSON object")
	}
	return nil
}

// set sets the member of a name. A null counts as absent.
func (e *event) set(name string, value []byte) error {
	if jsonobj.IsNull(value) {
		return nil
	}
	shape := ""
	if text := e.text(name); text != nil {
		if shape = "a string"; jsonobj.IsString(value) {
			*text, shape = jsonobj.StringOf(value), ""
		}
	} else if raw := e.any(name); raw != nil {
		*raw = value
	} else {
		shape = e.setOther(name, value)
	}
	if shape != "" {
		return tapedeck.Errorf(tapedeck.Invalid, "the %s of an event must be %s, not %.40s", name, shape, value)
	}
	return nil
}

// text returns the member of a name that is a string, nil if there is none.
func (e *event) text(name string) *string {
	switch name {
	case "channel":
		return &e.Channel
	case "type":
		return &e.Type
	case "id":
		return &e.ID
	case "agentId":
		return &e.AgentID
	case "sessionId":
		return &e.SessionID
	case "userId":
		return &e.UserID
	case "tool":
		return &e.Tool
	case "status":
		return &e.Status
	case "source":
		return &e.Source
	case "taskId":
		return &e.TaskID
	case "actor":
		return &e.Actor
	case "message":
		return &e.Message
	}
	return nil
}

// any returns the member of a name that is any JSON, nil if there is none.
func (e *event) any(name string) *json.RawMessage {
	switch name {
	case "timestamp":
		return &e.Timestamp
	case "input":
		return &e.Input
	case "output":
		return &e.Output
	case "cursor":
		return &e.Cursor
	case "lastSeen":
		return &e.LastSeen
	case "joinedAt":
		return &e.JoinedAt
	case "data":
		return &e.Data
	case "payload":
		return &e.Payload
	case "error":
		return &e.Error
	}
	return nil
}

// setOther sets a member that has a shape of its own. It returns that shape if value has another.
func (e *event) setOther(name string, value []byte) (shape string) {
	var err error
	switch name {
	case "text":
		e.Text, e.says = jsonobj.PieceOf(value), true
		if !jsonobj.IsString(value) {
			return "a string"
		}
	case "turn":
		if e.Turn, err = strconv.Atoi(string(value)); err != nil {
			return "a whole number"
		}
	case "duration":
		var ms float64
		if ms, err = strconv.ParseFloat(string(value), 64); err != nil {
			return "a number"
		}
		e.Duration = &ms
	}
	return ""
}

// timeOf reads a time: RFC 3339, or seconds or milliseconds since 1970.
func timeOf(name string, raw json.RawMessage) (time.Time, error) {
	var at time.Time
	n, err := strconv.ParseFloat(string(raw), 64)
	switch {
	case !given(raw):
		return at, nil
	case err == nil && n >= 0 && n < 1e11:
		return time.UnixMilli(int64(n * 1000)).UTC(), nil
	case err == nil && n >= 0 && n < 1e15:
		return time.UnixMilli(int64(n)).UTC(), nil
	case json.Unmarshal(raw, &at) == nil:
		return at, nil
	}
	return at, tapedeck.Errorf(tapedeck.Invalid, "the %s %.40s is neither a time nor milliseconds since 1970", name, raw)
}

// given reports whether a member is present and not null.
func given(raw json.RawMessage) bool { return len(raw) > 0 && !jsonobj.IsNull(raw) }

// textOf returns a string, or JSON of another shape as text.
func textOf(raw json.RawMessage) string {
	switch {
	case !given(raw):
		return ""
	case jsonobj.IsString(raw):
		return jsonobj.StringOf(raw)
	}
	return string(raw)
}

// hasType reports whether type is a member of the schema of a channel.
func hasType(channel string) bool {
	return channel == tapedeck.ChannelTerminal || channel == tapedeck.ChannelWorkflow
}

// ofEnvelope reports whether a member beside the object data is not one of its schema.
func ofEnvelope(name string) bool {
	switch name {
	case "id", "session_id", "sessionId", "offset", "type", "channel", "data", "timestamp", "created_at":
		return true
	}
	return false
}

// appendData appends the members of the schema, as they were published.
func (e *event) appendData(b []byte) []byte {
	start := len(b) + 1
	b = append(b, '{')
	if e.envelope != nil && e.ID != "" && jsonobj.Member(e.envelope, "id") == nil { // it is beside data
		b = jsonobj.AppendJSON(jsonobj.AppendName(b, start, "id"), e.ID)
	}
	o := jsonobj.Read(e.envelope)
	for name, value, ok := o.Next(); ok; name, value, ok = o.Next() {
		b = append(jsonobj.AppendName(b, start, string(name)), value...)
	}
	o = jsonobj.Read(e.raw)
	for name, value, ok := o.Next(); ok; name, value, ok = o.Next() {
		switch n := string(name); {
		case e.envelope != nil && (ofEnvelope(n) || jsonobj.Member(e.envelope, n) != nil):
		case n == "channel", n == "type" && !hasType(e.Channel):
		default:
			b = append(jsonobj.AppendName(b, start, n), value...)
		}
	}
	return append(b, '}')
}

// rowType returns the type of the envelope, or else a name for what happened.
func (e *event) rowType() string {
	if typ := jsonobj.StringOf(jsonobj.Member(e.raw, "type")); typ != "" {
		return typ
	}
	if e.Channel == tapedeck.ChannelAgentState {
		return stateType(e.Status)
	}
	return defaultType(e.Channel, e.Type)
}

// defaultType returns the type of a row of a channel, given that of its schema.
func defaultType(channel, typ string) string {
	switch channel {
	case tapedeck.ChannelChunks:
		return "chunk"
	case tapedeck.ChannelToolCalls:
		return "tool"
	case tapedeck.ChannelPresence:
		return "presence"
	}
	return typ
}

// stateType returns the type of a row with a status of an agent.
func stateType(status string) string {
	switch ending(status) {
	case continues:
		return "started"
	case completeEnd:
		return "complete"
	case failedEnd:
		return "error"
	case cancelledEnd:
		return "cancelled"
	}
	return status
}
