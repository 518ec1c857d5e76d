// Package jsonobj reads and writes JSON objects without reflection: it visits
// the members of an object in place, scans envelopes, and appends strings and
// members to a buffer. It knows no events.
package jsonobj

import (
	"bytes"
	"encoding/json"
)

// An object reads the members of a JSON object one by one without copying. It
// checks only what it needs to find the ends of values; [tapedeck.Event.Check]
// checks the whole JSON.
type object struct {
	rest  []byte
	begun bool
	done  bool
	Bad   bool
}

// Read returns a reader of the object in data. Empty data is an object without
// members.
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

// Next returns the next member, its name without quotes. After the last member
// it returns false; then Bad says whether the object was malformed.
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

// take returns the next value, nil if there is none.
func (o *object) take() []byte {
	n := ValueLen(o.rest)
	v := o.rest[:n:n]
	o.rest = o.rest[n:]
	if n == 0 {
		return nil
	}
	return v
}

// memberName removes the quotes from a name and decodes it. Without decoding,
// an escaped name would not match the plain one.
func memberName(quoted []byte) ([]byte, bool) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1], true
	}
	var s string
	err := json.Unmarshal(quoted, &s)
	return []byte(s), err == nil
}

// SkipSpace returns b without the space at its beginning.
func SkipSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\n' || b[0] == '\t' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}

// ValueLen returns the length of the JSON value at the beginning of b, judged
// by strings and brackets only; 0 if it does not end.
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

// nestedLen returns the length of the object or array at the beginning of b. It
// does not check which bracket closes which.
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

// StringLen returns the length of the string at the beginning of b, with its
// quotes; 0 if it does not end.
func StringLen(b []byte) int {
	for i := 1; ; i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return 0
		}
		i += n
		escapes := 0
		for b[i-1-escapes] == '\\' {
			escapes++ // stops at the opening quote at the latest
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}

// IsString reports whether raw is a JSON string.
func IsString(raw []byte) bool { return len(raw) >= 2 && raw[0] == '"' }

// IsNull reports whether raw is null.
func IsNull(raw []byte) bool { return string(raw) == "null" }

// StringIs reports whether raw is the JSON string s.
func StringIs(raw []byte, s string) bool {
	if !IsString(raw) {
		return false
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1:len(raw)-1]) == s
	}
	return StringOf(raw) == s
}

// StringOf returns the value of the JSON string raw, "" if raw is not a string.
func StringOf(raw []byte) string {
	if !IsString(raw) {
		return ""
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	_ = json.Unmarshal(raw, &s) // leaves "" if raw is invalid
	return s
}

// Nesting returns the depth of nested arrays and objects in a valid value.
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

// Member returns the value of a member of an object, nil if it is absent.
func Member(data []byte, name string) (value []byte) {
	o := Read(data)
	for n, raw, ok := o.Next(); ok; n, raw, ok = o.Next() {
		if string(n) == name {
			value = raw
		}
	}
	return value
}

// StringSize returns the size in bytes of the value of the JSON string raw.
func StringSize(raw []byte) int64 {
	if IsString(raw) && bytes.IndexByte(raw, '\\') < 0 {
		return int64(len(raw)) - 2
	}
	return int64(len(StringOf(raw)))
}

// MaxNesting is the deepest nesting of an event's data and of a JSON stream's
// message. Import allows a few levels more for the envelope, so that every
// export can be imported.
const MaxNesting = 1000
