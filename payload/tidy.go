package payload

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// TidyData returns the data of an event of a known type without redundant
// members: null where absence means the same, and a member "type" that repeats
// said, the event's type as sent. A timestamp becomes an integer. Data without
// such members is returned unchanged.
func TidyData(data []byte, typ, said string) ([]byte, error) {
	return typeByName[typ].layout.tidy(data, said)
}

// tidy implements [TidyData] for an object. If nothing changes, it returns data
// itself. typ is "" for a nested object, whose member "type" is kept.
func (l *layout) tidy(data []byte, typ string) ([]byte, error) {
	o, untidy := jsonobj.Read(data), false
	for name, raw, ok := o.Next(); ok; name, raw, ok = o.Next() {
		next, err := l.tidyMember(name, raw, typ)
		if err != nil {
			return nil, err
		}
		untidy = untidy || !same(next, raw)
	}
	if !untidy || o.Bad {
		return data, nil
	}
	b := append(make([]byte, 0, len(data)), '{')
	o = jsonobj.Read(data)
	for name, raw, ok := o.Next(); ok; name, raw, ok = o.Next() {
		if next, _ := l.tidyMember(name, raw, typ); next != nil {
			b = append(jsonobj.AppendName(b, 1, string(name)), next...)
		}
	}
	return append(b, '}'), nil
}

func same(a, b []byte) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// tidyMember returns the value of a member, nil to leave it out.
func (l *layout) tidyMember(name, raw []byte, typ string) ([]byte, error) {
	if typ != "" && string(name) == "type" {
		if !jsonobj.StringIs(raw, typ) {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "the data of a %s has the type %s", typ, jsonobj.Quote(jsonobj.StringOf(raw)))
		}
		return nil, nil
	}
	_, f := l.field(name)
	switch {
	case f == nil && string(name) == "subagentRunId" && jsonobj.IsNull(raw):
		return nil, nil
	case f == nil:
	case jsonobj.IsNull(raw) && !f.required && !f.shape.fits(raw):
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
		next, _ := f.nested.tidy(item, "") // fails only if typ is set
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

// wholeNumber rounds a number down to an integer. A number that is too large
// stays unchanged.
func wholeNumber(raw []byte) []byte {
	n, err := strconv.ParseFloat(string(raw), 64)
	if n = math.Floor(n); err != nil || math.Abs(n) > maxInteger {
		return raw
	}
	return strconv.AppendInt(nil, int64(n), 10)
}
