package tapedeck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// timeLayout is RFC 3339 in UTC with milliseconds, always 24 bytes long.
const timeLayout = "2006-01-02T15:04:05.000Z"

// headroom is what precedes the body of a [Draft]: room for the brace, the
// member name, 19 digits and a comma.
const headroom = len(`{"offset":`) + 19 + 1

// A Draft is an encoded event that lacks only its offset. The goroutine that
// appends encodes it, the one that writes puts the offset in front, in place:
// so each event is encoded once and never copied.
type Draft struct {
	buf   []byte
	chunk bool // raw bytes of a stream, without an envelope
}

// Record returns the draft's record at offset. A later call (the first commit
// failed) invalidates the record of an earlier one.
func (d Draft) Record(offset int64) Record {
	if d.chunk {
		return Record{offset, d.buf}
	}
	var digits [20]byte
	num := strconv.AppendInt(digits[:0], offset, 10)
	i := headroom - 1
	d.buf[i] = ','
	i -= len(num)
	copy(d.buf[i:], num)
	i -= len(`{"offset":`)
	copy(d.buf[i:], `{"offset":`)
	return Record{offset, d.buf[i:]}
}

// Len returns the size of the draft in bytes, without its offset.
func (d Draft) Len() int { return len(d.buf) }

// draft encodes e, which has passed Check, as everything after the offset.
func (e *Event) draft() (Draft, error) {
	b := make([]byte, headroom, headroom+160+len(e.Data))
	b = append(b, `"type":`...)
	b = appendString(b, e.Type)
	b = append(b, `,"channel":`...)
	b = appendString(b, e.Channel)
	b = append(b, `,"timestamp":"`...)
	b = e.Time.UTC().AppendFormat(b, timeLayout)
	b = append(b, '"')
	for _, m := range [...]struct{ name, value string }{
		{`,"thread":`, e.Thread}, {`,"invocation":`, e.Invocation}, {`,"instance":`, e.Instance},
	} {
		if m.value != "" {
			b = appendString(append(b, m.name...), m.value)
		}
	}
	if e.Turn != 0 {
		b = strconv.AppendInt(append(b, `,"turn":`...), int64(e.Turn), 10)
	}
	if e.Actor != "" {
		b = appendString(append(b, `,"actor":`...), e.Actor)
	}
	if len(e.Data) > 0 {
		b = append(b, `,"data":`...)
		buf := bytes.NewBuffer(b)
		if err := json.Compact(buf, e.Data); err != nil { // one line: SSE and NDJSON depend on it
			return Draft{}, Errorf(Invalid, "the data of %s is not JSON: %w", e.Type, err)
		}
		b = buf.Bytes()
	}
	return Draft{buf: append(b, '}')}, nil
}

// MarshalJSON encodes the envelope.
func (e Event) MarshalJSON() ([]byte, error) {
	d, err := e.draft()
	if err != nil {
		return nil, err
	}
	return d.Record(e.Offset).Data, nil
}

func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f || c == '<' || c == '>' || c == '&' {
			q, _ := json.Marshal(s) // cannot fail for a string
			return append(b, q...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// UnmarshalJSON decodes an envelope. A member that the envelope does not have is
// an error, for it could not be kept: members of the producer's own belong into
// data.
func (e *Event) UnmarshalJSON(b []byte) error {
	if e.scan(b) {
		return nil
	}
	return e.parse(b)
}

// scan reads the form that draft writes, in which most envelopes arrive, about
// ten times faster than encoding/json. It reports false for anything else; then
// e is undefined.
func (e *Event) scan(b []byte) bool {
	s := scanner{b: b, ok: true}
	*e = Event{}
	s.expect(`{"offset":`)
	e.Offset = s.int()
	s.expect(`,"type":`)
	e.Type = s.string()
	s.expect(`,"channel":`)
	e.Channel = channelName(s.string())
	s.expect(`,"timestamp":`)
	ts := s.string()
	for _, m := range [...]struct {
		name  string
		value *string
	}{{`,"thread":`, &e.Thread}, {`,"invocation":`, &e.Invocation}, {`,"instance":`, &e.Instance}} {
		if s.accept(m.name) {
			*m.value = s.string()
		}
	}
	if s.accept(`,"turn":`) {
		e.Turn = int(s.int())
	}
	if s.accept(`,"actor":`) {
		e.Actor = s.string()
	}
	if !s.ok || len(ts) != len(timeLayout) {
		return false
	}
	t, err := time.Parse(time.RFC3339, ts)
	if err != nil {
		return false
	}
	e.Time = t
	if s.accept(`,"data":`) {
		if len(s.b) < 3 || s.b[0] != '{' || s.b[len(s.b)-1] != '}' {
			return false
		}
		e.Data = json.RawMessage(s.b[: len(s.b)-1 : len(s.b)-1])
		// What a store hands out was checked when it was appended; what a
		// client sends is checked by Check. So it is not parsed again here,
		// but a member after data would hide in it.
		return balanced(e.Data)
	}
	return string(s.b) == "}"
}

// balanced reports whether b, which begins with a brace, is one JSON object as
// far as strings and brackets tell.
func balanced(b []byte) bool {
	depth, inString := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString:
			if c == '\\' {
				i++
			} else if c == '"' {
				inString = false
			}
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i == len(b)-1
			}
		}
	}
	return false
}

type scanner struct {
	b  []byte
	ok bool
}

func (s *scanner) accept(lit string) bool {
	if !s.ok || len(s.b) < len(lit) || string(s.b[:len(lit)]) != lit {
		return false
	}
	s.b = s.b[len(lit):]
	return true
}

func (s *scanner) expect(lit string) { s.ok = s.accept(lit) }

// string reads a string without escapes.
func (s *scanner) string() string {
	if !s.ok || len(s.b) == 0 || s.b[0] != '"' {
		s.ok = false
		return ""
	}
	n := bytes.IndexByte(s.b[1:], '"')
	if n < 0 || bytes.IndexByte(s.b[1:1+n], '\\') >= 0 {
		s.ok = false
		return ""
	}
	v := string(s.b[1 : 1+n])
	s.b = s.b[n+2:]
	return v
}

// int reads a canonical, non-negative integer.
func (s *scanner) int() int64 {
	var v int64
	n := 0
	for s.ok && n < len(s.b) && n < 18 && s.b[n] >= '0' && s.b[n] <= '9' {
		v = v*10 + int64(s.b[n]-'0')
		n++
	}
	if n == 0 || n > 1 && s.b[0] == '0' {
		s.ok = false
		return 0
	}
	s.b = s.b[n:]
	return v
}

// parse reads any form of the envelope.
func (e *Event) parse(b []byte) error {
	var w struct {
		Offset     int64           `json:"offset"`
		Type       string          `json:"type"`
		Channel    string          `json:"channel"`
		Timestamp  *time.Time      `json:"timestamp"`
		Thread     string          `json:"thread"`
		Invocation string          `json:"invocation"`
		Instance   string          `json:"instance"`
		Turn       int             `json:"turn"`
		Actor      string          `json:"actor"`
		Data       json.RawMessage `json:"data"`
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&w); err != nil {
		return fmt.Errorf("event envelope: %w", err)
	}
	*e = Event{
		Offset: w.Offset, Type: w.Type, Channel: channelName(w.Channel), Thread: w.Thread,
		Invocation: w.Invocation, Instance: w.Instance, Turn: w.Turn, Actor: w.Actor,
	}
	if w.Timestamp != nil {
		e.Time = w.Timestamp.UTC().Truncate(time.Millisecond)
	}
	if string(w.Data) != "null" {
		e.Data = w.Data
	}
	return nil
}

// channelName returns s, without keeping it alive if it is a known channel.
func channelName(s string) string {
	for _, c := range [...]string{
		ChannelChunks, ChannelToolCalls, ChannelAgentState, ChannelWorkflow,
		ChannelTerminal, ChannelPresence, ChannelSession,
	} {
		if s == c {
			return c
		}
	}
	return s
}
