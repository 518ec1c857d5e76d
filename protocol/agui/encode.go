package agui

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// A profile is the form of the events for a generation of clients.
type profile int

const (
	current profile = iota // AG-UI 1.0 and later
	legacy                 // before 1.0: an unknown type or outcome ends the client's stream with an error
)

// protocolVersion is the version of AG-UI that the events follow.
const protocolVersion = "1.0"

// A form has the members of an event type that AG-UI defines. A client warns of all
// others.
type form struct {
	need   []string // an event without one of them was erased
	may    []string
	marked bool // it begins an item, so its metadata tells the client the offset
	tagged bool // it may belong to a sub-agent
}

var (
	messageForm  = form{need: []string{"messageId"}, tagged: true}
	callForm     = form{need: []string{"toolCallId"}, tagged: true}
	deltaForm    = form{need: []string{"messageId", "delta"}, tagged: true}
	subagentForm = form{need: []string{"subagentRunId"}, may: []string{"result", "outcome", "message", "code"}}
)

var forms = map[string]form{
	tapedeck.StepStarted:             {need: []string{"stepName"}, tagged: true},
	tapedeck.StepFinished:            {need: []string{"stepName"}, tagged: true},
	tapedeck.TextMessageStart:        {need: []string{"messageId"}, may: []string{"role", "name"}, marked: true, tagged: true},
	tapedeck.TextMessageContent:      deltaForm,
	tapedeck.TextMessageEnd:          messageForm,
	tapedeck.ToolCallStart:           {need: []string{"toolCallId", "toolCallName"}, may: []string{"parentMessageId"}, marked: true, tagged: true},
	tapedeck.ToolCallArgs:            {need: []string{"toolCallId", "delta"}, tagged: true},
	tapedeck.ToolCallEnd:             callForm,
	tapedeck.ToolCallResult:          {need: []string{"messageId", "toolCallId", "content"}, may: []string{"role"}, marked: true, tagged: true},
	tapedeck.StateSnapshot:           {need: []string{"snapshot"}, tagged: true},
	tapedeck.StateDelta:              {need: []string{"delta"}, tagged: true},
	tapedeck.ActivitySnapshot:        {need: []string{"messageId", "activityType", "content"}, may: []string{"replace"}, marked: true, tagged: true},
	tapedeck.ActivityDelta:           {need: []string{"messageId", "activityType", "patch"}, tagged: true},
	tapedeck.ReasoningStart:          messageForm,
	tapedeck.ReasoningEnd:            messageForm,
	tapedeck.ReasoningMessageStart:   {need: []string{"messageId", "role"}, marked: true, tagged: true},
	tapedeck.ReasoningMessageContent: deltaForm,
	tapedeck.ReasoningMessageEnd:     messageForm,
	tapedeck.ReasoningEncryptedValue: {need: []string{"subtype", "entityId", "encryptedValue"}, tagged: true},
	tapedeck.SubagentStarted:         {need: []string{"subagentRunId", "name"}, may: []string{"description", "parentSubagentRunId", "parentToolCallId", "parentMessageId"}, marked: true},
	tapedeck.SubagentFinished:        subagentForm,
	tapedeck.SubagentError:           {need: []string{"subagentRunId", "message"}, may: []string{"code"}},
	tapedeck.Raw:                     {need: []string{"event"}, may: []string{"source"}, tagged: true},
	tapedeck.Custom:                  {need: []string{"name", "value"}, tagged: true},
}

// event encodes an event of the log as an event of AG-UI. again means that the client
// has had the beginning of the message or call, and so knows its place. It reports false
// if the client must not get the event.
func (p profile) event(e *tapedeck.Event, again bool) ([]byte, bool) {
	f, ok := forms[e.Type]
	subagent := jsonobj.Member(e.Data, "subagentRunId")
	switch {
	case !ok:
		return nil, false
	case p == legacy && !f.tagged && subagent != nil: // the events of sub-agents themselves
		return nil, false
	case p == legacy && subagent != nil && (e.Type == tapedeck.StepStarted || e.Type == tapedeck.StepFinished):
		return nil, false // without its owner it could not be distinguished from a step of the agent
	}
	for _, name := range f.need {
		if jsonobj.Member(e.Data, name) == nil {
			return nil, false
		}
	}
	b := jsonobj.AppendJSON([]byte(`{"type":`), e.Type)
	o := jsonobj.Read(e.Data)
	for name, raw, ok := o.Next(); ok; name, raw, ok = o.Next() {
		switch n := string(name); {
		case p == legacy && n == "content" && e.Type == tapedeck.ToolCallResult:
			b = append(appendName(b, n), flat(raw)...)
		case slices.Contains(f.need, n), slices.Contains(f.may, n), f.tagged && p != legacy && n == "subagentRunId":
			b = append(appendName(b, n), raw...)
		}
	}
	b = appendMetadata(b, jsonobj.Member(e.Data, "metadata"), e, f.marked && !again)
	return append(appendTime(b, e), '}'), true
}

func appendName(b []byte, name string) []byte {
	return append(jsonobj.AppendJSON(append(b, ','), name), ':')
}

// appendTime appends the time of an event.
func appendTime(b []byte, e *tapedeck.Event) []byte {
	if e.Time.IsZero() {
		return b
	}
	return strconv.AppendInt(appendName(b, "timestamp"), e.Time.UnixMilli(), 10)
}

// A mark says where in the log something is. A front end finds it in the metadata of
// the message or tool call, and can rewind to it.
type mark struct {
	Offset     int64  `json:"offset"`
	Invocation string `json:"invocation,omitempty"`
}

// metaKey is the member of metadata that has a mark.
const metaKey = "tapedeck"

// appendMetadata appends the metadata of other vendors and, if marked is true, the
// place of the event. Our own metadata in the log is for other readers.
func appendMetadata(b, raw []byte, e *tapedeck.Event, marked bool) []byte {
	m := metadata(raw, e.Offset, e.Invocation, marked)
	if len(m) == 0 {
		return b
	}
	return jsonobj.AppendMembers(appendName(b, "metadata"), m)
}

func metadata(raw []byte, offset int64, invocation string, marked bool) tapedeck.Members {
	m := tapedeck.Members{}
	if len(raw) > 0 && raw[0] == '{' {
		_ = json.Unmarshal(raw, &m) // the log has valid JSON only
		delete(m, metaKey)
	}
	if marked {
		m[metaKey], _ = json.Marshal(mark{offset, invocation}) // a number and a string
	}
	return m
}

// flat returns the content of a message as one string. Clients before 1.0 know no
// parts in the answer of a tool.
func flat(content []byte) []byte {
	if jsonobj.IsString(content) {
		return content
	}
	m := payload.Message{Content: content}
	return jsonobj.AppendJSON(nil, m.Text())
}

// frame returns a payload as an event of AG-UI. Members that AG-UI does not define
// are left out.
func frame(typ string, members ...member) []byte {
	b := jsonobj.AppendJSON([]byte(`{"type":`), typ)
	for _, m := range members {
		if m.value != nil {
			b = append(appendName(b, m.name), m.value...)
		}
	}
	return append(b, '}')
}

// A member is a member of a [frame]; a nil value is left out.
type member struct {
	name  string
	value []byte
}

// text returns a member that is a string, or none if that is empty.
func text(name, value string) member {
	if value == "" {
		return member{}
	}
	return member{name, jsonobj.AppendJSON(nil, value)}
}

// encode returns a member with any value that can be encoded.
func encode(name string, value any) member {
	raw, err := json.Marshal(value)
	if err != nil {
		return member{}
	}
	return member{name, raw}
}

// outcome returns the outcome of a RUN_FINISHED for the client, nil for none.
func (p profile) outcome(o *payload.Outcome) *payload.Outcome {
	switch {
	case o == nil:
		return nil
	case p == legacy && o.Type == payload.OutcomeInterrupt:
		return &payload.Outcome{Type: o.Type, Interrupts: p.interrupts(o.Interrupts)}
	case p == legacy:
		return nil
	case o.Type == payload.OutcomeSuccess, o.Type == payload.OutcomeCancelled, o.Type == payload.OutcomeInterrupt:
		return &payload.Outcome{Type: o.Type, Interrupts: o.Interrupts, PendingToolCallIDs: o.PendingToolCallIDs}
	}
	return nil
}

func (p profile) interrupts(list []payload.Interrupt) []payload.Interrupt {
	out := slices.Clone(list)
	for i := range out {
		out[i].SubagentRunID = ""
	}
	return out
}
