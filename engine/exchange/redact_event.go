package exchange

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// Learn looks for matches in an event. Call it with nil after the last event: then
// it searches the texts that it still holds.
func (r *Redactor) Learn(e *tapedeck.Event) {
	if e == nil {
		r.streams.endAll()
		return
	}
	if _, ok := streamTypes[e.Type]; ok {
		r.streams.add(e)
	}
	if e.Type == tapedeck.RunFinished || e.Type == tapedeck.RunError {
		r.streams.endRun(e)
	}
	w := writer{redactor: r, src: e.Data, offset: e.Offset, counts: true, skip: streamTypes[e.Type].delta}
	w.document()
	if _, spans := w.string(e.Actor); w.changed || spans {
		r.hits[e.Offset] = struct{}{}
	}
}

// Event returns an event without its matches. Learn must have seen the event.
func (r *Redactor) Event(e tapedeck.Event) tapedeck.Event {
	_, hit := r.hits[e.Offset]
	edits := r.edits[e.Offset]
	if !hit && edits == nil {
		return e
	}
	w := writer{redactor: r, src: e.Data, offset: e.Offset, skip: streamTypes[e.Type].delta, edits: edits}
	e.Data = w.document()
	e.Actor, _ = w.string(e.Actor)
	return e
}

// Session returns the catalogue's entry without matches.
func (r *Redactor) Session(s tapedeck.Session) tapedeck.Session {
	w := writer{redactor: r}
	s.Title, _ = w.string(s.Title)
	s.Owner, _ = w.string(s.Owner)
	s.Labels = maps.Clone(s.Labels)
	for name, v := range s.Labels {
		if r.key(name) != nil && v != "" {
			s.Labels[name] = api.Redacted
		} else {
			s.Labels[name], _ = w.string(v)
		}
	}
	return s
}

// A writer copies the data of an event, which is valid JSON, without its matches.
// All other bytes stay the same.
type writer struct {
	redactor *Redactor
	src      []byte
	pos      int
	out      []byte
	offset   int64
	counts   bool   // count the matches
	changed  bool   // there was a match
	skip     string // member with the delta of a stream
	edits    []edit // edits of that member
	pairs    bool   // objects can have a name and a value
	depth    int
}

// maxPairs is how deep objects are checked for pairs of a name and a value. Each
// level costs the size of its objects.
const maxPairs = 32

func (w *writer) document() json.RawMessage {
	if len(w.src) == 0 {
		return nil
	}
	w.pairs = len(w.redactor.keys) > 0 && bytes.Contains(w.src, []byte(`"value"`))
	w.value(nil)
	return w.out
}

// value copies the value at pos. With a rule, the value is left out.
func (w *writer) value(one *rule) {
	w.space()
	start := w.pos
	if one != nil {
		w.skipValue()
		w.drop(one, w.src[start:w.pos])
		return
	}
	switch w.src[w.pos] {
	case '{':
		w.object()
	case '[':
		w.array()
	case '"':
		w.skipValue()
		w.text(w.src[start:w.pos])
	default:
		w.skipValue()
		w.out = append(w.out, w.src[start:w.pos]...)
	}
}

// drop writes the mark in place of a value. Null and "" stay, because they reveal
// nothing.
func (w *writer) drop(one *rule, raw []byte) {
	if s := string(raw); s == "null" || s == `""` {
		w.out = append(w.out, raw...)
		return
	}
	w.changed = true
	if w.counts {
		s, ok := text(raw)
		if !ok {
			s = string(raw)
		}
		one.found(w.offset, s)
	}
	w.out = append(w.out, quoted(api.Redacted)...)
}

func (w *writer) text(raw []byte) {
	s, _ := text(raw)
	if redacted, changed := w.string(s); changed {
		w.changed = true
		raw = quoted(redacted)
	}
	w.out = append(w.out, raw...)
}

func (w *writer) string(s string) (string, bool) {
	redacted, spans := w.redactor.text(s)
	if w.counts {
		for _, sp := range spans {
			for _, one := range sp.rules {
				one.found(w.offset, s[sp.from:sp.to])
			}
		}
	}
	return redacted, spans != nil
}

func (w *writer) array() {
	w.next('[')
	w.depth++
	for i := 0; w.more(']'); i++ {
		if i > 0 {
			w.next(',')
		}
		w.value(nil)
	}
	w.depth--
	w.next(']')
}

func (w *writer) object() {
	pair := w.pair()
	w.next('{')
	w.depth++
	for first := true; w.more('}'); {
		if w.src[w.pos] == ',' {
			w.pos++
			w.space()
		}
		before := len(w.out)
		if !first {
			w.out = append(w.out, ',')
		}
		start := w.pos
		w.skipValue()
		name := str(w.src[start:w.pos])
		w.out = append(w.out, w.src[start:w.pos]...)
		w.next(':')
		if !w.member(name, pair) {
			w.out = w.out[:before]
			continue
		}
		first = false
	}
	w.depth--
	w.next('}')
}

// member copies the value of a member. It reports false if the member has to be
// left out.
func (w *writer) member(name string, pair *rule) bool {
	switch {
	case w.depth == 1 && w.skip != "" && name == w.skip:
		w.space()
		start := w.pos
		w.skipValue()
		raw := w.src[start:w.pos]
		if w.edits != nil {
			raw = quotedPiece(apply(jsonobj.PieceOf(raw), w.edits))
		}
		w.out = append(w.out, raw...)
	case w.depth == 1 && w.edits != nil && name == "cuts":
		w.value(nil) // they would not match the delta any more
		return false
	case pair != nil && name == "value":
		w.value(pair)
	default:
		w.value(w.redactor.key(name))
	}
	return true
}

// pair returns the rule for the value of an object that names the value: a header,
// or an operation of a JSON patch whose path leads to a key.
func (w *writer) pair() *rule {
	if !w.pairs || w.depth >= maxPairs {
		return nil
	}
	end := w.pos + valueLen(w.src[w.pos:])
	m := object(w.src[w.pos:end])
	if m["value"] == nil {
		return nil
	}
	for _, name := range []string{"path", "name", "key"} {
		for part := range strings.SplitSeq(str(m[name]), "/") {
			if one := w.redactor.key(part); one != nil && part != "" {
				return one
			}
		}
	}
	return nil
}

func (w *writer) space() {
	for w.pos < len(w.src) && (w.src[w.pos] == ' ' || w.src[w.pos] == '\t' || w.src[w.pos] == '\n' || w.src[w.pos] == '\r') {
		w.pos++
	}
}

// more reports whether an object or array has another token before its end.
func (w *writer) more(end byte) bool {
	w.space()
	return w.pos < len(w.src) && w.src[w.pos] != end
}

// next copies the next token, which is c.
func (w *writer) next(c byte) {
	w.space()
	w.pos++
	w.out = append(w.out, c)
}

// skipValue skips the value at pos.
func (w *writer) skipValue() {
	w.space()
	w.pos += valueLen(w.src[w.pos:])
}

// valueLen returns the length of the value that valid JSON begins with.
func valueLen(b []byte) int {
	depth, inString := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			if inString = !inString; !inString && depth == 0 {
				return i + 1
			}
		case inString:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
			if depth < 0 {
				return i
			}
		case depth == 0 && (c == ',' || c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ':'):
			return i
		}
	}
	return len(b)
}
