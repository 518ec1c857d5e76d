package view

import (
	"bytes"
	"encoding/json"

	"github.com/tapedeck/tapedeck/payload"
)

// A deltaForm is the form of an event that adds text to a message or a call.
// Most events of a log are of this kind.
type deltaForm struct {
	id     string // the member that has the id of the message or call
	prefix []byte // the bytes with which the data begins
}

var (
	messageDelta = deltaForm{"messageId", []byte(`{"messageId":"`)}
	callDelta    = deltaForm{"toolCallId", []byte(`{"toolCallId":"`)}
)

// decode returns the id and the delta, where possible as parts of data. It
// reads the form that our engine writes without encoding/json, which takes ten
// times as long.
func (f *deltaForm) decode(data json.RawMessage) (id, delta []byte, ok bool) {
	if id, delta, ok = f.scan(data); ok {
		return id, delta, true
	}
	var d map[string]json.RawMessage
	var idText string
	var text payload.Piece
	if json.Unmarshal(data, &d) != nil ||
		json.Unmarshal(d[f.id], &idText) != nil || text.UnmarshalJSON(d["delta"]) != nil {
		return nil, nil, false
	}
	return []byte(idText), []byte(text), idText != ""
}

// scan reads {"<id>":"…","delta":"…"…}, if the id has no escapes.
func (f *deltaForm) scan(data []byte) (id, delta []byte, ok bool) {
	rest, ok := bytes.CutPrefix(data, f.prefix)
	if !ok {
		return nil, nil, false
	}
	n := bytes.IndexByte(rest, '"')
	if n <= 0 || bytes.IndexByte(rest[:n], '\\') >= 0 {
		return nil, nil, false
	}
	id = rest[:n]
	rest, ok = bytes.CutPrefix(rest[n:], []byte(`","delta":"`))
	if !ok {
		return nil, nil, false
	}
	end := endOfString(rest)
	if end < 0 || f.mayRepeat(rest[end:]) {
		return nil, nil, false
	}
	if bytes.IndexByte(rest[:end], '\\') < 0 {
		return id, rest[:end], true
	}
	var text payload.Piece
	quoted := data[len(data)-len(rest)-1:][:end+2]
	err := text.UnmarshalJSON(quoted) // json.Unmarshal would read it three times
	return id, []byte(text), err == nil
}

// mayRepeat reports whether the rest of the data may have the id or the delta
// once more. If a member is repeated, the last one counts.
func (f *deltaForm) mayRepeat(rest []byte) bool {
	return len(rest) > len(`"}`) && (bytes.IndexByte(rest, '\\') >= 0 || bytes.Contains(rest, f.prefix[1:len(f.prefix)-2]) || bytes.Contains(rest, []byte(`"delta"`)))
}

// endOfString returns the index of the quote that ends the string in which b
// begins, -1 if there is none.
func endOfString(b []byte) int {
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}
