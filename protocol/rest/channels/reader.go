package channels

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/view"
)

// A Reader gives the events of a log in the form of the channels, in the order of the log. It
// gives back what was published; it derives the form of what the log has from elsewhere.
type Reader struct {
	Session string

	// Before returns the session as it is before the first event that the reader reads. The
	// reader calls it once at most: if an event belongs to a call, a run or a message that
	// began before. Nil: the reader begins with the log.
	Before func() (view.Snapshot, error)

	known state
	asked bool // Before was called
}

// A Row is an event in the form of the channels, in the envelope of a table of events.
type Row struct {
	SessionID string
	Offset    int64  // its number: 0, 1, 2 and so on
	Type      string // that of the published envelope, otherwise such as "chunk"
	Channel   string
	Data      json.RawMessage // the members of the channel's schema
	Timestamp int64           // when it happened, as its publisher says, in milliseconds since 1970
	CreatedAt int64           // when the log got it, in milliseconds since 1970
}

// Row returns the event with a number, given the event of the log that stands for it; see
// [view.InChannels]. Before, [Reader.Note] must have had all earlier events since the first.
func (r *Reader) Row(e *tapedeck.Event, number int64) (Row, error) {
	at := e.Time.UnixMilli()
	row := Row{SessionID: r.Session, Offset: number, Channel: e.Channel, Timestamp: at, CreatedAt: at}
	p, err := r.published(e)
	if err != nil {
		return Row{}, err
	}
	if p != nil {
		row.Type, row.Channel, row.Data = p.rowType(), p.Channel, p.appendData(nil)
		if !p.at.IsZero() {
			row.Timestamp = p.at.UnixMilli()
		}
	} else if err := r.derive(&row, e); err != nil {
		return Row{}, err
	}
	return row, nil
}

// AppendJSON appends the row as one line of JSON. Its id is the session and the number.
func (row *Row) AppendJSON(b []byte) []byte {
	b = append(appendHead(b, row.SessionID, row.Offset, row.Type, row.Channel), row.Data...)
	return appendTail(b, row.Timestamp, row.CreatedAt)
}

// appendHead appends what is before the data of a row.
func appendHead(b []byte, session string, number int64, typ, channel string) []byte {
	b = jsonobj.AppendJSON(append(b, `{"id":`...), session)
	b = strconv.AppendInt(append(b[:len(b)-1], ':'), number, 10)
	b = jsonobj.AppendJSON(append(b, `","session_id":`...), session)
	b = strconv.AppendInt(append(b, `,"offset":`...), number, 10)
	b = jsonobj.AppendJSON(append(b, `,"type":`...), typ)
	b = jsonobj.AppendJSON(append(b, `,"channel":`...), channel)
	return append(b, `,"data":`...)
}

// appendTail appends what is behind the data of a row.
func appendTail(b []byte, at, created int64) []byte {
	b = strconv.AppendInt(append(b, `,"timestamp":`...), at, 10)
	b = strconv.AppendInt(append(b, `,"created_at":`...), created, 10)
	return append(b, '}')
}

// published returns what was published as e, nil if e was not published. Anybody who may
// write events can write a rawEvent, so it counts only if its agent or user is that of e, and
// if it says what e says.
func (r *Reader) published(e *tapedeck.Event) (*event, error) {
	var d said
	o := jsonobj.Read(e.Data)
	for name, value, ok := o.Next(); ok; name, value, ok = o.Next() {
		d.set(string(name), value)
	}
	raw := d.raw
	if e.Type == view.TypeAgentState || e.Type == view.TypeToolStatus { // their data is what was published
		raw = e.Data
	}
	if len(raw) == 0 || raw[0] != '{' {
		return nil, nil
	}
	p, wrong := parse(raw)
	if wrong != nil || p.Channel == "" || p.Channel != channelOf(e) || !p.repeats(e, &d) {
		return nil, nil //nolint:nilerr // what cannot be read was not published
	}
	if e.Type == tapedeck.ToolCallEnd || e.Type == tapedeck.ToolCallResult {
		k, err := r.call(e, p.ID)
		if err != nil || !p.isOf(k, e.Type) {
			return nil, err
		}
	}
	return p, nil
}

// isOf reports whether p may be of a call. Its input is compared where the call gets it; a later
// event may have another one.
func (p *event) isOf(k *madeCall, typ string) bool {
	return k != nil && (p.Tool == "" || p.Tool == k.tool) && (typ != tapedeck.ToolCallEnd || k.long || bytes.Equal(p.Input, k.args))
}

// A said has the members of the data of an event that its origin repeats.
type said struct {
	message, call, tool, delta, content, metadata, user, cursor, data, id, source, kind, task, payload, raw []byte
}

func (d *said) set(name string, value []byte) {
	switch name {
	case "messageId":
		d.message = value
	case "toolCallId":
		d.call = value
	case "toolCallName":
		d.tool = value
	case "delta":
		d.delta = value
	case "content":
		d.content = value
	case "metadata":
		d.metadata = value
	case "user":
		d.user = value
	case "cursor":
		d.cursor = value
	case "data":
		d.data = value
	case "id":
		d.id = value
	case "source":
		d.source = value
	case "kind":
		d.kind = value
	case "taskId":
		d.task = value
	case "payload":
		d.payload = value
	case "rawEvent":
		d.raw = value
	}
}

// repeats reports whether p says the same as the event of the log that stands for it, and its
// data.
func (p *event) repeats(e *tapedeck.Event, d *said) bool {
	own := thread(p) == e.ThreadName()
	is := jsonobj.StringIs
	switch e.Type {
	case tapedeck.TextMessageContent:
		return own && p.Text == jsonobj.PieceOf(d.delta) && is(d.message, messageID(e.Invocation, p.Turn))
	case tapedeck.ToolCallStart:
		return own && is(d.call, p.ID) && is(d.tool, p.Tool) && !given(p.Input) && !p.answers()
	case tapedeck.ToolCallEnd:
		return own && is(d.call, p.ID) && !p.answers()
	case tapedeck.ToolCallResult:
		failed := tapedeck.MetaOf(json.RawMessage(d.metadata)).Error
		return own && is(d.call, p.ID) && is(d.content, p.answer()) && p.answers() && failed == (ending(p.Status) == failedEnd)
	case view.TypeAgentState, view.TypeToolStatus:
		return own && p.Status != ""
	case tapedeck.PresenceJoined, tapedeck.PresenceMoved, tapedeck.PresenceLeft:
		return is(d.user, p.UserID) && p.presenceType() == e.Type && string(p.Cursor) == string(d.cursor)
	case tapedeck.TerminalInput, tapedeck.TerminalOutput:
		return p.terminalType() == e.Type && is(d.data, textOf(p.Data)) && is(d.id, p.ID) && is(d.source, p.Source) && is(d.kind, p.Type)
	}
	return p.workflowType() == e.Type && is(d.id, p.ID) && is(d.task, p.TaskID) && string(p.Payload) == string(d.payload)
}

// channelOf returns the channel of a row. The log takes that of an unknown type from the
// writer.
func channelOf(e *tapedeck.Event) string {
	switch e.Type {
	case view.TypeAgentState:
		return tapedeck.ChannelAgentState
	case view.TypeToolStatus:
		return tapedeck.ChannelToolCalls
	}
	return tapedeck.ChannelOf(e.Type)
}
