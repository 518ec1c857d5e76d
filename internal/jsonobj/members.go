// Package jsonobj reads and writes JSON objects without reflection: it visits the
// members of an object in place, scans envelopes, and appends strings and members
// to a buffer. It knows no events.
package jsonobj

import (
	"bytes"
	"encoding/json"
)

// An object reads the members of a JSON object one by one, without copying them.
// It looks only as deep into the JSON as it must to find where a value ends;
// whether the rest is JSON is for [tapedeck.Event.Check] to say.
type object struct {
	rest  []byte
	begun bool
	done  bool
	Bad   bool
}

// readObject returns a reader of the object in data; no data is an object
// without members.
func Read(data []byte) object {
	if len(data) == 0 {
		return object{done: true}
	}
	rest := SkipSpace(data)
	if len(rest) == 0 || rest[0] != '{' {
		return object{Bad: true, done: true}
	}
	return object{rest: rest[1:]}
}

// next returns the next member, the name without its quotes. After the last one
// it returns false; then bad says whether the object was malformed.
func (o *object) Next() (name, value []byte, ok bool) {
	if o.done {
		return nil, nil, false
	}
	o.space()
	if o.accept('}') {
		o.done = true
		o.Bad = len(SkipSpace(o.rest)) > 0
		return nil, nil, false
	}
	if o.begun && !o.accept(',') {
		return o.fail()
	}
	o.begun = true
	o.space()
	name = o.take()
	o.space()
	if !IsString(name) || !o.accept(':') {
		return o.fail()
	}
	o.space()
	if value = o.take(); value == nil {
		return o.fail()
	}
	if name, ok = memberName(name); !ok {
		return o.fail()
	}
	return name, value, true
}

func (o *object) fail() ([]byte, []byte, bool) {
	o.done, o.Bad = true, true
	return nil, nil, false
}

func (o *object) space() { o.rest = SkipSpace(o.rest) }

func (o *object) accept(c byte) bool {
	if len(o.rest) == 0 || o.rest[0] != c {
		return false
	}
	o.rest = o.rest[1:]
	return true
}

// take returns the value that comes next, nil if there is none.
func (o *object) take() []byte {
	n := ValueLen(o.rest)
	v := o.rest[:n:n]
	o.rest = o.rest[n:]
	if n == 0 {
		return nil
	}
	return v
}

// memberName takes the quotes off a name. An escaped name must not get past
// those who look for the plain one.
func memberName(quoted []byte) ([]byte, bool) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1], true
	}
	var s string
	err := json.Unmarshal(quoted, &s)
	return []byte(s), err == nil
}

func SkipSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\n' || b[0] == '\t' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}

// valueLen returns the length of the JSON value that b begins with, as far as
// strings and brackets tell; 0 if it does not end.
func ValueLen(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	switch b[0] {
	case '"':
		return StringLen(b)
	case '{', '[':
		return nestedLen(b)
	}
	for n, c := range b { // a number, true, false or null
		switch c {
		case ',', ':', '}', ']', ' ', '\t', '\r', '\n', '"':
			return n
		}
	}
	return len(b)
}

// nestedLen returns the length of the object or array that b begins with. Which
// bracket closes which is not looked at.
func nestedLen(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			n := StringLen(b[i:])
			if n == 0 {
				return 0
			}
			i += n - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// stringLen returns the length of the string that b begins with, quotes
// included; 0 if it does not end.
func StringLen(b []byte) int {
	for i := 1; ; i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return 0
		}
		i += n
		escapes := 0
		for b[i-1-escapes] == '\\' {
			escapes++ // ends at the opening quote at the latest
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}

func IsString(raw []byte) bool { return len(raw) >= 2 && raw[0] == '"' }

func IsNull(raw []byte) bool { return string(raw) == "null" }

// stringIs reports whether raw is the JSON string s.
func StringIs(raw []byte, s string) bool {
	if !IsString(raw) {
		return false
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1:len(raw)-1]) == s
	}
	return StringOf(raw) == s
}

// stringOf returns the string that raw is, "" if it is none.
func StringOf(raw []byte) string {
	if !IsString(raw) {
		return ""
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	_ = json.Unmarshal(raw, &s) // leaves "" if it is none
	return s
}

// Nesting returns how deep the arrays and objects of a valid value are nested.
func Nesting(raw []byte) (deepest int) {
	depth, inString := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

// member returns the value of a member of an object, nil if it has none.
func Member(data []byte, name string) (value []byte) {
	o := Read(data)
	for n, raw, ok := o.Next(); ok; n, raw, ok = o.Next() {
		if string(n) == name {
			value = raw
		}
	}
	return value
}

// StringSize returns the size in bytes of the string that raw is.
func StringSize(raw []byte) int64 {
	if IsString(raw) && bytes.IndexByte(raw, '\\') < 0 {
		return int64(len(raw)) - 2
	}
	return int64(len(StringOf(raw)))
}

// MaxNesting is how deep the data of an event may be nested, and a message of a
// stream of JSON. Import allows a few levels more, for the envelope: so an export
// can always come back.
const MaxNesting = 1000
