package tapedeck

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// timeLayout is RFC 3339 in UTC with milliseconds, always 24 bytes long.
const timeLayout = "2006-01-02T15:04:05.000Z"

// headroom is the space in front of the body of a [Draft] for the opening
// brace, the member name, 19 digits and a comma.
const headroom = len(`{"offset":`) + 19 + 1

// A Draft is an encoded event without its offset. The appending goroutine
// encodes it, and the writing goroutine puts the offset in front, in place. So
// each event is encoded once and never copied.
type Draft struct {
	buf   []byte
	chunk bool // raw bytes of a stream, without an envelope
}

// Record returns the draft's record at offset. A later call, such as after a
// failed commit, invalidates the record of an earlier one.
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
func (d Draft) Len() int {
	if d.chunk {
		return len(d.buf)
	}
	return len(d.buf) - headroom
}

// draft encodes e, which must have passed Check, without its offset.
func (e *Event) draft() Draft {
	b := make([]byte, headroom, headroom+e.draftSize())
	b = append(b, `"type":`...)
	b = appendString(b, e.Type)
	b = append(b, `,"channel":`...)
	b = appendString(b, e.Channel)
	b = append(b, `,"timestamp":"`...)
	b = jsonobj.AppendTime(b, e.Time)
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
		b = appendCompact(append(b, `,"data":`...), e.Data) // must be one line: SSE and NDJSON depend on it
	}
	return Draft{buf: append(b, '}')}
}

// draftSize returns how many bytes a draft takes if no string needs an escape. Records stay
// in memory while they are new, so it is no estimate.
func (e *Event) draftSize() int {
	const always = len(`"type":"","channel":"","timestamp":""}`) + len(timeLayout)
	n := always + len(e.Type) + len(e.Channel)
	for _, m := range [...]struct {
		name, value int
	}{
		{len(`,"thread":""`), len(e.Thread)}, {len(`,"invocation":""`), len(e.Invocation)}, {len(`,"instance":""`), len(e.Instance)},
		{len(`,"actor":""`), len(e.Actor)}, {len(`,"data":`), len(e.Data)},
	} {
		if m.value > 0 {
			n += m.name + m.value
		}
	}
	if e.Turn != 0 {
		n += len(`,"turn":`) + 20
	}
	return n
}

// appendCompact appends valid JSON without the space between its tokens.
func appendCompact(b []byte, data []byte) []byte {
	from := 0 // start of the part that is not appended yet
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i += max(1, jsonobj.StringLen(data[i:])) - 1
		case ' ', '\t', '\r', '\n':
			b = append(b, data[from:i]...)
			from = i + 1
		}
	}
	return append(b, data[from:]...)
}

// appendString appends s as encoding/json does, which also escapes <, > and &:
// an actor may have them, and an envelope may be embedded in a page.
func appendString(b []byte, s string) []byte {
	if strings.ContainsAny(s, "<>&") {
		q, _ := json.Marshal(s) // cannot fail for a string
		return append(b, q...)
	}
	return jsonobj.AppendJSON(b, s)
}

// MarshalJSON encodes the envelope of e.
func (e Event) MarshalJSON() ([]byte, error) {
	if len(e.Data) > 0 && !json.Valid(e.Data) {
		return nil, Errorf(Invalid, "the data of %s is not JSON", e.Type)
	}
	return e.draft().Record(e.Offset).Data, nil
}

// UnmarshalJSON decodes an envelope. An unknown member of the envelope is an
// error, because it would be lost: a producer's own members belong into data.
func (e *Event) UnmarshalJSON(b []byte) error {
	if err := e.decode(b); err != nil {
		return err
	}
	e.Data = slices.Clone(e.Data) // the caller may reuse b
	return nil
}

// decode decodes an envelope. e.Data may share memory with b.
func (e *Event) decode(b []byte) (err error) {
	if !e.scan(b) {
		*e, err = parseEvent(b)
	}
	return err
}

// scan reads the form that draft writes, which most envelopes have, about ten
// times faster than encoding/json. It reports false for any other form; then e
// is undefined.
func (e *Event) scan(b []byte) bool {
	s := jsonobj.Scanner{B: b, Ok: true}
	*e = Event{}
	s.Expect(`{"offset":`)
	e.Offset = s.Int()
	s.Expect(`,"type":`)
	e.Type = typeName(s.String())
	s.Expect(`,"channel":`)
	e.Channel = channelName(s.String())
	s.Expect(`,"timestamp":`)
	e.Time = s.Time()
	for _, m := range [...]struct {
		name  string
		value *string
	}{{`,"thread":`, &e.Thread}, {`,"invocation":`, &e.Invocation}, {`,"instance":`, &e.Instance}} {
		if s.Accept(m.name) {
			*m.value = string(s.String())
		}
	}
	if s.Accept(`,"turn":`) {
		e.Turn = int(s.Int())
	}
	if s.Accept(`,"actor":`) {
		e.Actor = string(s.String())
	}
	if !s.Ok {
		return false
	}
	if s.Accept(`,"data":`) {
		if len(s.B) < 3 || s.B[0] != '{' || s.B[len(s.B)-1] != '}' {
			return false
		}
		// The data of a stored event was checked when it was appended. The data
		// of a client is checked by Check. So it is not parsed here. But a
		// member after data would hide in it, so its length is compared.
		n := len(s.B) - 1
		e.Data = json.RawMessage(s.B[:n:n])
		return jsonobj.ValueLen(e.Data) == n
	}
	return string(s.B) == "}"
}

// parseEvent reads any form of the envelope. Unlike encoding/json, it does not
// accept "Type" for "type".
func parseEvent(b []byte) (Event, error) {
	var e Event
	switch {
	case !utf8.Valid(b):
		return e, Errorf(Invalid, "the event is not valid UTF-8")
	case !json.Valid(b):
		return e, Errorf(Invalid, "the event is not JSON")
	case jsonobj.IsNull(jsonobj.SkipSpace(b)):
		return e, nil // null changes nothing, as in encoding/json
	}
	o := jsonobj.Read(b)
	for name, raw, ok := o.Next(); ok; name, raw, ok = o.Next() {
		p := e.member(name)
		if p == nil {
			return Event{}, Errorf(Invalid, "the envelope of an event cannot have the member %s", jsonobj.Quote(string(name))).WithHint("put it into data")
		}
		if err := json.Unmarshal(raw, p); err != nil {
			return Event{}, Errorf(Invalid, "the event's %s has the wrong type", name).Because(err).WithHint(envelopeHint)
		}
	}
	if o.Bad {
		return Event{}, Errorf(Invalid, "an event is a JSON object").WithHint(envelopeHint)
	}
	e.Time = e.Time.UTC().Truncate(time.Millisecond)
	if jsonobj.IsNull(e.Data) {
		e.Data = nil
	}
	return e, nil
}

// member returns the destination of a member of the envelope, nil for an
// unknown name.
func (e *Event) member(name []byte) any {
	switch string(name) {
	case "offset":
		return &e.Offset
	case "type":
		return &e.Type
	case "channel":
		return &e.Channel
	case "timestamp":
		return &e.Time
	case "thread":
		return &e.Thread
	case "invocation":
		return &e.Invocation
	case "instance":
		return &e.Instance
	case "turn":
		return &e.Turn
	case "actor":
		return &e.Actor
	case "data":
		return &e.Data
	}
	return nil
}

const envelopeHint = "offset and turn are integers, timestamp is a time of RFC 3339, data is an object, all others are strings"

// typeName returns b as a string. A known type costs no allocation.
func typeName(b []byte) string {
	if t := typeNames[string(b)]; t != "" {
		return t
	}
	return string(b)
}

// channelName returns b as a string. A known channel costs no allocation.
func channelName(b []byte) string {
	for _, c := range [...]string{
		ChannelChunks, ChannelToolCalls, ChannelAgentState, ChannelWorkflow,
		ChannelTerminal, ChannelPresence, ChannelSession,
	} {
		if string(b) == c {
			return c
		}
	}
	return string(b)
}
