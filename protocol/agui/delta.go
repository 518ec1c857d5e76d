package agui

import (
	"bytes"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/internal/sse"
)

// A delta joins the deltas of one message or tool call that are in one page. A client
// needs about as long for an event of one word as for one of a hundred words.
type delta struct {
	typ   string
	id    []byte // JSON, as the next two
	owner []byte
	text  []byte // without quotes
}

// deltas has the member with the id for each type of delta.
var deltas = map[string]string{
	tapedeck.TextMessageContent:      "messageId",
	tapedeck.ReasoningMessageContent: "messageId",
	tapedeck.ToolCallArgs:            "toolCallId",
}

// add joins an event to the delta. It reports false if e is not a plain delta.
func (d *delta) add(s *stream, e *tapedeck.Event) bool {
	name, ok := deltas[e.Type]
	if !ok {
		return false
	}
	var id, owner, text []byte
	o := jsonobj.Read(e.Data)
	for n, raw, ok := o.Next(); ok; n, raw, ok = o.Next() {
		switch string(n) {
		case name:
			id = raw
		case "delta":
			text = raw
		case "subagentRunId":
			owner = raw
		case "cuts", "timestamp":
		default:
			return false
		}
	}
	if id == nil || !jsonobj.IsString(text) {
		return true // it was erased
	}
	if s.profile == legacy {
		owner = nil
	}
	if d.typ != e.Type || !bytes.Equal(d.id, id) || !bytes.Equal(d.owner, owner) || len(d.text)+len(text) > maxDelta {
		s.flush()
		d.typ, d.id, d.owner, d.text = e.Type, append(d.id[:0], id...), append(d.owner[:0], owner...), d.text[:0]
	}
	if len(text) > maxFrame {
		for _, b := range appendDeltas(nil, e.Type, member{name, id}, d.ownerMember(), jsonobj.PieceOf(text)) {
			s.buf = sse.AppendFrame(s.buf, "", "", b)
		}
		return true
	}
	d.text = append(d.text, text[1:len(text)-1]...)
	return true
}

func (d *delta) ownerMember() member {
	if len(d.owner) == 0 {
		return member{}
	}
	return member{"subagentRunId", d.owner}
}

// flush gathers the delta.
func (s *stream) flush() {
	d := &s.delta
	if d.typ == "" || len(d.text) == 0 {
		d.typ = ""
		return
	}
	quoted := append(append([]byte{'"'}, d.text...), '"')
	b := frame(d.typ, member{deltas[d.typ], d.id}, member{"delta", quoted}, d.ownerMember())
	s.buf = sse.AppendFrame(s.buf, "", "", b)
	d.typ = ""
}
