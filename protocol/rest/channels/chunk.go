package channels

import (
	"bytes"
	"strconv"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// Most rows of a session are pieces of text. This file writes them without decoding their
// events, about five times faster than [Reader.Row]. Whatever is unusual is left to that.

// AppendChunk appends the row of a piece of text, as one line of JSON: it says the same as
// that of [Reader.Row]. It reports false for any other event, and for a piece that it does not
// understand; then b is unchanged. It notes nothing, because later rows need nothing of it.
func (r *Reader) AppendChunk(b []byte, rec tapedeck.Record, number int64) ([]byte, bool) {
	var e pieceEvent
	if !e.scan(rec) {
		return b, false
	}
	if e.origin == nil {
		return r.appendOwn(b, &e, number)
	}
	var p published
	var outer, inner members // outside of p, which would be on the heap with pointers into itself
	if in := outer.readChunk(e.origin, &inner); in != nil && p.readEnvelope(&outer, in) && p.readMembers(in, in == &outer) && p.isOf(&e) {
		return r.appendPublished(b, &p, in, &e, number), true
	}
	return b, false
}

// A pieceEvent is a TEXT_MESSAGE_CONTENT of the log. Its parts share memory with the record.
type pieceEvent struct {
	offset             int64
	at                 time.Time
	thread, run, actor []byte
	turn               int64

	message, delta, origin []byte // JSON; origin is nil if it was not published
}

// scan reads an envelope as the log writes it.
func (e *pieceEvent) scan(rec tapedeck.Record) bool {
	s := jsonobj.Scanner{B: rec.Data, Ok: true}
	s.Expect(`{"offset":`)
	e.offset = s.Int()
	s.Expect(`,"type":"` + tapedeck.TextMessageContent + `","channel":"` + tapedeck.ChannelChunks + `","timestamp":`)
	if !s.Ok {
		return false
	}
	e.at = s.Time()
	if s.Accept(`,"thread":`) {
		e.thread = s.String()
	}
	if s.Accept(`,"invocation":`) {
		e.run = s.String()
	}
	if s.Accept(`,"instance":`) {
		s.String()
	}
	if s.Accept(`,"turn":`) {
		e.turn = s.Int()
	}
	if s.Accept(`,"actor":`) {
		e.actor = s.String()
	}
	s.Expect(`,"data":`)
	if !s.Ok || len(s.B) < 2 {
		return false
	}
	return e.read(s.B[:len(s.B)-1])
}

// read reads the data.
func (e *pieceEvent) read(data []byte) bool {
	o := jsonobj.Read(data)
	for name, value, ok := o.Next(); ok; name, value, ok = o.Next() {
		switch string(name) {
		case "messageId":
			e.message = value
		case "delta":
			e.delta = value
		case "rawEvent":
			e.origin = value
		case "timestamp", "cuts": // rows do not have them
		default:
			return false // also metadata, which may say that the event is implied, and erased
		}
	}
	return !o.Bad && isPlain(e.message) && jsonobj.IsString(e.delta)
}

func (e *pieceEvent) threadName() []byte {
	if len(e.thread) == 0 {
		return []byte(tapedeck.MainThread)
	}
	return e.thread
}

// members has the members of an object. No two of them have the same name.
type members struct {
	list [12]struct{ name, value []byte }
	n    int
}

// read reads an object. It reports false for one with too many members, or with a name twice.
func (m *members) read(object []byte) bool {
	m.n = 0
	o := jsonobj.Read(object)
	for name, value, ok := o.Next(); ok; name, value, ok = o.Next() {
		if m.n == len(m.list) || m.get(string(name)) != nil {
			return false
		}
		m.list[m.n].name, m.list[m.n].value = name, value
		m.n++
	}
	return !o.Bad && m.n > 0
}

// get returns the value of a member, nil if it is absent.
func (m *members) get(name string) []byte {
	for i := range m.n {
		if string(m.list[i].name) == name {
			return m.list[i].value
		}
	}
	return nil
}

// isPlain reports whether raw is a string without escapes, and not empty.
func isPlain(raw []byte) bool {
	return len(raw) > 2 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0
}

// inside returns what is between the quotes of a plain string.
func inside(raw []byte) []byte { return raw[1 : len(raw)-1] }

// readChunk reads a published chunk, and returns its members: of the object data, which are
// read into inner, or else those beside channel. It returns nil if it does not understand it.
func (m *members) readChunk(raw []byte, inner *members) *members {
	if !m.read(raw) || string(m.get("channel")) != `"`+tapedeck.ChannelChunks+`"` {
		return nil
	}
	data := m.get("data")
	switch {
	case data == nil:
		return m
	case data[0] == '{' && inner.read(data):
		return inner
	}
	return nil
}

// A published is what is known of a published chunk.
type published struct {
	agent, text, turn []byte // JSON; turn may be nil
	outside           []byte // an id that is only beside data
	typ               []byte // of the envelope, without quotes; nil if it has none
	timed             bool
	ms                int64 // when it happened, in milliseconds since 1970, if it is timed
}

// readEnvelope reads what is beside data.
func (p *published) readEnvelope(outer, in *members) bool {
	for _, m := range outer.list[:outer.n] {
		switch name := string(m.name); {
		case name == "channel", name == "data":
		case name == "type":
			if !isPlain(m.value) {
				return false
			}
			p.typ = inside(m.value)
		case in == outer: // readMembers reads it
		case name == "id":
			if p.outside = m.value; !isPlain(m.value) {
				return false
			}
		case name == "timestamp":
			if !p.setTime(m.value) {
				return false
			}
		case name != "session_id" && name != "offset" && name != "created_at":
			return false
		}
	}
	return true
}

// readMembers reads the members of the schema.
func (p *published) readMembers(in *members, flat bool) bool {
	for _, m := range in.list[:in.n] {
		ok := isPlain(m.value)
		switch string(m.name) {
		case "id":
			p.outside = nil
		case "agentId":
			p.agent = m.value
		case "sessionId":
		case "text":
			p.text, ok = m.value, jsonobj.IsString(m.value)
		case "turn":
			p.turn, ok = m.value, isCount(m.value)
		case "timestamp":
			ok = p.setTime(m.value)
		case "channel", "type":
			ok = flat
		default:
			return false
		}
		if !ok {
			return false
		}
	}
	return p.agent != nil
}

// isCount reports whether raw is a whole number from 0, spelt as usual.
func isCount(raw []byte) bool {
	for _, c := range raw {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(raw) > 0 && len(raw) < 10 && (len(raw) == 1 || raw[0] != '0')
}

// setTime sets the time from milliseconds or seconds since 1970, as [timeOf] does.
func (p *published) setTime(raw []byte) bool {
	s := jsonobj.Scanner{B: raw, Ok: true}
	n := s.Int()
	if !s.Ok || len(s.B) > 0 || n >= 1e15 {
		return false
	}
	if p.ms, p.timed = n, true; n < 1e11 {
		p.ms = n * 1000
	}
	return true
}

// isOf reports whether p says what the event of the log says, see [event.repeats].
func (p *published) isOf(e *pieceEvent) bool {
	turn := "0"
	if p.turn != nil {
		turn = string(p.turn)
	}
	message, ok := bytes.CutPrefix(inside(e.message), e.run)
	return ok && len(message) > 0 && message[0] == '.' && string(message[1:]) == turn &&
		sameText(p.text, e.delta) && bytes.Equal(inside(p.agent), e.threadName())
}

// sameText reports whether two strings are the same text: a publisher may escape characters
// that the log does not.
func sameText(a, b []byte) bool {
	return bytes.Equal(a, b) || a != nil && jsonobj.PieceOf(a) == jsonobj.PieceOf(b)
}

func (r *Reader) appendPublished(b []byte, p *published, in *members, e *pieceEvent, number int64) []byte {
	typ := "chunk"
	if p.typ != nil {
		typ = string(p.typ)
	}
	b = append(appendHead(b, r.Session, number, typ, tapedeck.ChannelChunks), '{')
	start := len(b)
	if p.outside != nil {
		b = append(append(b, `"id":`...), p.outside...)
	}
	for _, m := range in.list[:in.n] {
		if name := string(m.name); name != "channel" && name != "type" {
			b = append(jsonobj.AppendName(b, start, name), m.value...)
		}
	}
	created := e.at.UnixMilli()
	at := created
	if p.timed {
		at = p.ms
	}
	return appendTail(append(b, '}'), at, created)
}

// appendOwn appends the row of a piece that was not published, as [Reader.derive] makes it.
func (r *Reader) appendOwn(b []byte, e *pieceEvent, number int64) ([]byte, bool) {
	if !r.knows() {
		return b, false
	}
	before := len(b)
	message := inside(e.message)
	b = appendHead(b, r.Session, number, "chunk", tapedeck.ChannelChunks)
	b = append(append(b, `{"id":"`...), message...)
	b = append(strconv.AppendInt(append(b, '.'), e.offset, 10), '"')
	users := r.known.users[string(message)]
	if who, ok := bytes.CutPrefix(e.actor, []byte("user:")); users && ok && len(who) > 0 {
		b = append(append(append(b, `,"agentId":"`...), e.actor...), `","userId":"`...)
		b = append(append(b, who...), '"')
	} else if users {
		b = append(b, `,"agentId":"user"`...)
	} else {
		agent, ok := r.agentOf(e)
		if !ok {
			return b[:before], false
		}
		b = append(append(append(b, `,"agentId":"`...), agent...), '"')
	}
	b = jsonobj.AppendJSON(append(b, `,"sessionId":`...), r.Session)
	b = append(append(b, `,"text":`...), e.delta...)
	b = append(append(b, `,"messageId":`...), e.message...)
	if users {
		b = append(b, `,"role":"user"`...)
	}
	b = strconv.AppendInt(append(b, `,"turn":`...), e.turn, 10)
	at := e.at.UnixMilli()
	b = strconv.AppendInt(append(b, `,"timestamp":`...), at, 10)
	return appendTail(append(b, '}'), at, at), true
}

// agentOf is [Reader.agent] for a reader that knows what is open.
func (r *Reader) agentOf(e *pieceEvent) (name []byte, ok bool) {
	if name, ok := bytes.CutPrefix(e.actor, []byte("agent:")); ok {
		return name, len(name) > 0
	}
	if known := r.known.agents[string(e.run)]; known != "" {
		return []byte(known), tapedeck.CheckName("the agent", known) == nil
	}
	return e.threadName(), true
}
