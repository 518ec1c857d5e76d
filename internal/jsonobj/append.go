package jsonobj

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"
	"unicode/utf8"
)

// AppendJSON appends s as a JSON string; invalid UTF-8 in it becomes U+FFFD.
// Unlike encoding/json, it does not escape <, > and &, because deltas are full
// of code.
func AppendJSON(b []byte, s string) []byte {
	b = append(b, '"')
	plain := 0 // start of the part that is not appended yet
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, s[plain:i]...), `\ufffd`...)
				plain = i + 1
			}
			i += n
			continue
		}
		if c < ' ' || c == '"' || c == '\\' || c == 0x7f {
			b = appendEscape(append(b, s[plain:i]...), c)
			plain = i + 1
		}
		i++
	}
	return append(append(b, s[plain:]...), '"')
}

func appendEscape(b []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// AppendTime appends a time as RFC 3339 in UTC with milliseconds, as [Scanner.Time] reads it,
// five times faster than package time.
func AppendTime(b []byte, t time.Time) []byte {
	const layout = "2006-01-02T15:04:05.000Z"
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.AppendFormat(b, layout)
	}
	hour, minute, second := t.Clock()
	b = append(b, layout...)
	to := b[len(b)-len(layout):]
	for _, part := range [...]struct{ at, digits, n int }{{0, 4, year}, {5, 2, int(month)}, {8, 2, day}, {11, 2, hour}, {14, 2, minute}, {17, 2, second}, {20, 3, t.Nanosecond() / 1e6}} {
		for i := part.at + part.digits - 1; i >= part.at; i-- {
			to[i] = byte('0' + part.n%10)
			part.n /= 10
		}
	}
	return b
}

// Names returns the names of members, sorted.
func Names(m map[string]json.RawMessage) []string {
	if len(m) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(m))
}

// AppendName appends the name of a member, with a comma before it unless it is
// the first one. start is the length of b after the object's opening brace.
func AppendName(b []byte, start int, name string) []byte {
	if len(b) > start {
		b = append(b, ',')
	}
	return append(AppendJSON(b, name), ':')
}

// AppendRaw appends a value that is JSON already, or null if it is empty. It
// does not check the value; [tapedeck.Event.Check] does.
func AppendRaw(b []byte, raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return append(b, "null"...)
	}
	return append(b, raw...)
}

// AppendMembers appends an object with members sorted by name.
func AppendMembers(b []byte, m map[string]json.RawMessage) []byte {
	b = append(b, '{')
	start := len(b)
	for _, name := range Names(m) {
		b = AppendRaw(AppendName(b, start, name), m[name])
	}
	return append(b, '}')
}

// Quote returns s in quotes for an error sentence, cut to 64 bytes.
func Quote(s string) string {
	const limit = 64
	if len(s) > limit {
		cut := limit
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	return string(AppendJSON(nil, s))
}

// WithMember returns the object with one more string member. Data that is not
// an object is returned unchanged, for a later check to refuse.
func WithMember(data []byte, name, value string) []byte {
	o := Read(data)
	members := 0
	for _, _, ok := o.Next(); ok; _, _, ok = o.Next() {
		members++
	}
	if o.Bad {
		return data
	}
	b := append(make([]byte, 0, len(data)+len(name)+len(value)+8), '{')
	if members > 0 {
		inner := bytes.TrimSpace(data)
		b = append(append(b, inner[1:len(inner)-1]...), ',')
	}
	return append(AppendJSON(append(AppendJSON(b, name), ':'), value), '}')
}
