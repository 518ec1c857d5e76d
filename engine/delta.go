package engine

import (
	"bytes"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// maxCuts is the largest number of deltas that are joined to one event.
const maxCuts = 4096

// A delta is the data of an event that has an id and a text and no other member.
// Id and text stay as the runner encoded them: deltas are joined without decoding
// and encoding their texts again.
type delta struct {
	name string // the member that has the id
	id   []byte // a JSON string
	text []byte // a JSON string without its quotes
	size int    // bytes of the text when it is decoded
	last time.Time

	joined int    // how many deltas were joined; 0 for a delta that is as it came
	cuts   []byte // the cut of each of them, with a comma in front; see [payload.Cut]
}

// deltaOf returns the delta of an event. It reports false for an event that has
// more than a delta, and for a text that joining could change, such as half of a
// surrogate pair.
func deltaOf(ev *tapedeck.Event) (d delta, ok bool) {
	switch ev.Type {
	case tapedeck.TextMessageContent, tapedeck.ReasoningMessageContent:
		d.name = "messageId"
	case tapedeck.ToolCallArgs:
		d.name = "toolCallId"
	default:
		return delta{}, false
	}
	d.last = ev.Time
	o := jsonobj.Read(ev.Data)
	for name, raw, ok := o.Next(); ok; name, raw, ok = o.Next() {
		switch {
		case !jsonobj.IsString(raw):
			return delta{}, false
		case string(name) == d.name && d.id == nil:
			d.id = raw
		case string(name) == "delta" && d.text == nil:
			d.text = raw[1 : len(raw)-1]
		default:
			return delta{}, false
		}
	}
	if o.Bad || len(d.text) == 0 || len(d.id) <= len(`""`) || !utf8.Valid(ev.Data) {
		return delta{}, false
	}
	if _, ok = decodedLen(d.id[1 : len(d.id)-1]); ok {
		d.size, ok = decodedLen(d.text)
	}
	return d, ok
}

// decodedLen returns how many bytes the inside of a JSON string has when it is
// decoded. It reports false for an inside that is not valid JSON or has half of a
// surrogate pair. Whether the bytes are UTF-8 is for the caller to check.
func decodedLen(s []byte) (n int, ok bool) {
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c < ' ' || c == '"':
			return 0, false
		case c != '\\':
			i, n = i+1, n+1
		default:
			length, size := escapeLen(s[i:])
			if length == 0 {
				return 0, false
			}
			i, n = i+length, n+size
		}
	}
	return n, true
}

// escapeLen returns the length of the escape that s begins with, and the length
// of the character that it stands for; 0 if it stands for none.
func escapeLen(s []byte) (length, size int) {
	if len(s) < 2 {
		return 0, 0
	}
	if s[1] != 'u' {
		if bytes.IndexByte([]byte(`"\/bfnrt`), s[1]) < 0 {
			return 0, 0
		}
		return 2, 1
	}
	r := hexRune(s[2:])
	switch {
	case r < 0:
		return 0, 0
	case !utf16.IsSurrogate(r):
		return 6, utf8.RuneLen(r)
	case len(s) < 8 || s[6] != '\\' || s[7] != 'u' || utf16.DecodeRune(r, hexRune(s[8:])) == utf8.RuneError:
		return 0, 0
	}
	return 12, 4
}

// hexRune returns the number that four hexadecimal digits are, -1 if s does not
// begin with them.
func hexRune(s []byte) rune {
	if len(s) < 4 {
		return -1
	}
	n, err := strconv.ParseUint(string(s[:4]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// join joins a delta to this one, whose event happened at begin. It reports false
// if the other belongs to another message, or if this one is full.
func (d *delta) join(next *delta, begin time.Time) bool {
	if d.joined >= maxCuts || d.name != next.name || !bytes.Equal(d.id, next.id) {
		return false
	}
	if d.joined == 0 {
		d.text = append(make([]byte, 0, 2*(len(d.text)+len(next.text))), d.text...) // the first text is a part of the event
		d.addCut(d.size, 0)
	}
	d.text = append(d.text, next.text...)
	d.size += next.size
	if next.last.After(d.last) { // a clock that is set back must not make times of cuts go back
		d.last = next.last
	}
	d.addCut(next.size, d.last.Sub(begin).Milliseconds())
	return true
}

func (d *delta) addCut(size int, ms int64) {
	d.joined++
	d.cuts = strconv.AppendInt(append(d.cuts, ",["...), int64(size), 10)
	d.cuts = append(strconv.AppendInt(append(d.cuts, ','), ms, 10), ']')
}

// data returns the data of the event to which deltas were joined.
func (d *delta) data() []byte {
	const names = len(`{"":,"delta":"","cuts":[]}`)
	b := make([]byte, 0, names+len(d.name)+len(d.id)+len(d.text)+len(d.cuts))
	b = append(append(append(b, `{"`...), d.name...), `":`...)
	b = append(append(b, d.id...), `,"delta":"`...)
	b = append(append(b, d.text...), `","cuts":[`...)
	return append(append(b, d.cuts[1:]...), "]}"...)
}
