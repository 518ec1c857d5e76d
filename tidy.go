package tapedeck

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
)

// tidy returns an object without the null members that would mean the same if
// they were absent, without a type that repeats that of the event, and with an
// integer as timestamp. What is tidy already is not copied. An object that is no
// event's own has typ "".
func (l *layout) tidy(data []byte, typ string) ([]byte, error) {
	o, untidy := readObject(data), false
	for name, raw, ok := o.next(); ok; name, raw, ok = o.next() {
		next, err := l.tidyMember(name, raw, typ)
		if err != nil {
			return nil, err
		}
		untidy = untidy || !same(next, raw)
	}
	if !untidy || o.bad {
		return data, nil
	}
	b := append(make([]byte, 0, len(data)), '{')
	o = readObject(data)
	for name, raw, ok := o.next(); ok; name, raw, ok = o.next() {
		if next, _ := l.tidyMember(name, raw, typ); next != nil {
			b = append(appendName(b, 1, string(name)), next...)
		}
	}
	return append(b, '}'), nil
}

func same(a, b []byte) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// tidyMember returns the value of a member, nil if it is to be left out.
func (l *layout) tidyMember(name, raw []byte, typ string) ([]byte, error) {
	if typ != "" && string(name) == "type" {
		if !stringIs(raw, typ) {
			return nil, Errorf(Invalid, "the data of a %s says that its type is %s", typ, quote(stringOf(raw)))
		}
		return nil, nil
	}
	_, f := l.field(name)
	switch {
	case f == nil && string(name) == "subagentRunId" && isNull(raw):
		return nil, nil
	case f == nil:
	case isNull(raw) && !f.required && !f.shape.fits(raw):
		return nil, nil
	case f.name == "timestamp" && !f.shape.fits(raw) && shapeNumber.fits(raw):
		return wholeNumber(raw), nil
	case f.shape == shapeStruct:
		return f.nested.tidy(raw, "")
	case f.shape == shapeStructs:
		return f.tidyList(raw), nil
	}
	return raw, nil
}

func (f *field) tidyList(raw []byte) []byte {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return raw
	}
	untidy := false
	for i, item := range items {
		next, _ := f.nested.tidy(item, "") // fails only for the type of an event
		untidy = untidy || !same(next, item)
		items[i] = next
	}
	if !untidy {
		return raw
	}
	b := []byte{'['}
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, item...)
	}
	return append(b, ']')
}

// wholeNumber rounds a number down to an integer; one that is too large stays.
func wholeNumber(raw []byte) []byte {
	n, err := strconv.ParseFloat(string(raw), 64)
	if n = math.Floor(n); err != nil || math.Abs(n) > maxInteger {
		return raw
	}
	return strconv.AppendInt(nil, int64(n), 10)
}

// member returns the value of a member of an object, nil if it has none.
func member(data []byte, name string) (value []byte) {
	o := readObject(data)
	for n, raw, ok := o.next(); ok; n, raw, ok = o.next() {
		if string(n) == name {
			value = raw
		}
	}
	return value
}

// withMember returns the object with a string member more. What is no object
// stays as it is, for others to refuse.
func withMember(data []byte, name, value string) []byte {
	o := readObject(data)
	members := 0
	for _, _, ok := o.next(); ok; _, _, ok = o.next() {
		members++
	}
	if o.bad {
		return data
	}
	b := append(make([]byte, 0, len(data)+len(name)+len(value)+8), '{')
	if members > 0 {
		inner := bytes.TrimSpace(data)
		b = append(append(b, inner[1:len(inner)-1]...), ',')
	}
	return append(appendJSON(append(appendJSON(b, name), ':'), value), '}')
}
