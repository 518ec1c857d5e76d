// Package httpapi reads the parameters of requests to the HTTP API and writes its
// JSON answers. The protocol adapters that serve this API share it.
package httpapi

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
)

// Root is the path that begins every path of the HTTP API.
const Root = "/api/v1"

// SessionID returns the session's id, which is the part {id} of the path.
func SessionID(r *http.Request) (string, error) {
	id := r.PathValue("id")
	return id, tapedeck.CheckID("the session's id", id)
}

// A Query reads the parameters of a request. It remembers the first one that is
// wrong: read all parameters, then look at Err.
type Query struct {
	Values url.Values
	Err    error
}

// ParseQuery parses the query of r. Only the named parameters are allowed, because
// a misspelt one would silently have no effect. The parameter token is allowed
// everywhere: access control reads it before.
func ParseQuery(r *http.Request, names ...string) *Query {
	values, err := url.ParseQuery(r.URL.RawQuery)
	q := &Query{Values: values}
	if err != nil {
		q.Fail("the query is malformed")
	}
	for name := range values {
		if name != "token" && !slices.Contains(names, name) {
			e := tapedeck.Errorf(tapedeck.Invalid, "there is no parameter %q here", name)
			if len(names) > 0 {
				e = e.WithHint("the parameters are %s", strings.Join(names, ", "))
			}
			q.Err = e
		}
	}
	return q
}

// Fail sets Err, unless an earlier parameter was wrong.
func (q *Query) Fail(format string, args ...any) {
	if q.Err == nil {
		q.Err = tapedeck.Errorf(tapedeck.Invalid, format, args...)
	}
}

// String returns a parameter, "" if it is absent.
func (q *Query) String(name string) string {
	v := q.Values[name]
	switch len(v) {
	case 0:
		return ""
	case 1:
		return v[0]
	}
	q.Fail("the parameter %s is given %d times", name, len(v))
	return ""
}

// Filter returns a parameter that selects what is answered, "" if it is absent. An empty one,
// such as that of a variable that is not set, would select everything: it is refused.
func (q *Query) Filter(name string) string {
	s := q.String(name)
	if s == "" && q.Values.Has(name) {
		q.Fail("the parameter %s is empty; leave it out, or give it a value", name)
	}
	return s
}

// Offset returns a parameter that is a number from 0, def if it is absent.
func (q *Query) Offset(name string, def int64) int64 {
	s := q.String(name)
	if s == "" && !q.Values.Has(name) {
		return def
	}
	n, ok := ParseOffset(s)
	if !ok {
		q.Fail("the parameter %s must be a whole number from 0, not %q", name, s)
	}
	return n
}

// From returns the offset to begin at, 0 if it is absent. fromOffset precedes from,
// its other name.
func (q *Query) From() int64 { return q.Offset("fromOffset", q.Offset("from", 0)) }

// HasFrom reports whether the request says where to begin.
func (q *Query) HasFrom() bool { return q.Values.Has("fromOffset") || q.Values.Has("from") }

// FromCursor is [Query.From] for a request that may say of which incarnation of the session
// its offset is: 41@3. The incarnation is 0 if it does not.
func (q *Query) FromCursor() (from, incarnation int64) {
	name := "fromOffset"
	if !q.Values.Has(name) {
		name = "from"
	}
	s := q.String(name)
	if s == "" && !q.Values.Has(name) {
		return 0, 0
	}
	from, incarnation, ok := ParseCursor(s)
	if !ok {
		q.Fail("the parameter %s must be a whole number from 0, or a cursor such as 41@3, not %q", name, s)
	}
	return from, incarnation
}

// AtCursor returns the parameter at, an offset or a cursor such as 41@3: the offset, -1 if the
// parameter is absent, and the incarnation of the session, 0 if the client does not say it.
func (q *Query) AtCursor() (at, incarnation int64) {
	s := q.String("at")
	if s == "" && !q.Values.Has("at") {
		return -1, 0
	}
	at, incarnation, ok := ParseCursor(s)
	if !ok {
		q.Fail("the parameter at must be a whole number from 0, or a cursor such as 41@3, not %q", s)
	}
	return at, incarnation
}

// ParseCursor reads an offset, or an offset and the incarnation of its session: 41@3. An
// offset alone is of whatever the session is now; its incarnation is 0.
func ParseCursor(s string) (offset, incarnation int64, ok bool) {
	number, life, has := strings.Cut(s, "@")
	if offset, ok = ParseOffset(number); ok && has {
		incarnation, ok = ParseOffset(life)
		ok = ok && incarnation > 0
	}
	return offset, incarnation, ok
}

// AppendIncarnation appends to an offset the incarnation of its session, see [ParseCursor]:
// nothing if it is not known.
func AppendIncarnation(b []byte, s *tapedeck.Session) []byte {
	if s.Gen == 0 {
		return b
	}
	return strconv.AppendInt(append(b, '@'), s.Gen, 10)
}

// AppendCursor appends the member cursor to an answer that has the member next: the same
// offset with the incarnation of its session. It appends nothing if that is not known.
func AppendCursor(b []byte, next int64, s *tapedeck.Session) []byte {
	if s.Gen == 0 {
		return b
	}
	b = strconv.AppendInt(append(b, `,"cursor":"`...), next, 10)
	return append(AppendIncarnation(b, s), '"')
}

// CheckIncarnation refuses a cursor of another history of a session.
func CheckIncarnation(s *tapedeck.Session, id string, incarnation int64) error {
	if incarnation == 0 || incarnation == s.Gen {
		return nil
	}
	return tapedeck.Errorf(tapedeck.Replaced, "your cursor is of another history of session %s: it was deleted and created again, or restored from a backup", id).
		WithHint("drop what you have of the session, and read it from offset 0")
}

// ParseOffset reads decimal digits, without a sign and without space.
func ParseOffset(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n >= 0 && s[0] != '+' && s[0] != '-'
}

// Limit returns the parameter limit, from 1 to highest, def if it is absent.
func (q *Query) Limit(def, highest int) int {
	s := q.String("limit")
	if !q.Values.Has("limit") {
		return def
	}
	n, ok := ParseOffset(s)
	if !ok || n < 1 || n > int64(highest) {
		q.Fail("the parameter limit must be a whole number from 1 to %d, not %q", highest, s)
	}
	return int(n)
}

// Flag returns a parameter that is true or false, false if it is absent.
func (q *Query) Flag(name string) bool {
	return q.OneOf(name, "false", "true", "false") == "true"
}

// OneOf returns a parameter that is one of values, def if it is absent.
func (q *Query) OneOf(name, def string, values ...string) string {
	s := q.String(name)
	switch {
	case s == "" && !q.Values.Has(name):
		return def
	case !slices.Contains(values, s):
		q.Fail("the parameter %s must be %s, not %q", name, strings.Join(values, " or "), s)
	}
	return s
}

// List returns a parameter that may be repeated and may have several values with
// commas between them. Each value must pass check.
func (q *Query) List(name string, check func(what, value string) error) []string {
	var all []string
	for _, v := range q.Values[name] {
		all = append(all, strings.Split(v, ",")...)
	}
	for _, v := range all {
		if err := check("the parameter "+name, v); err != nil && q.Err == nil {
			q.Err = err
		}
	}
	return all
}

// Time returns a parameter that is a time or a day, zero if it is absent. A day
// begins at midnight UTC.
func (q *Query) Time(name string) time.Time {
	s := q.String(name)
	if s == "" && !q.Values.Has(name) {
		return time.Time{}
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t
		}
	}
	q.Fail("the parameter %s must be a time such as 2026-01-05T12:34:56Z, or a day, not %q", name, s)
	return time.Time{}
}

// ID returns a parameter that is an id, "" if it is absent.
func (q *Query) ID(name string) string {
	s := q.Filter(name)
	if s != "" && q.Err == nil {
		q.Err = tapedeck.CheckID("the parameter "+name, s)
	}
	return s
}

// LastEventID returns the id of the last event that the client of an event stream
// has received, "" if it sends none. An EventSource sends a header; the parameter
// lastEventId is for the first request, in which it cannot set headers.
func (q *Query) LastEventID(r *http.Request) string {
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		return id
	}
	return q.String("lastEventId")
}

// CheckFrom refuses to read a session from an offset beyond its head. resumed says
// that the client claims to have the event before from.
func CheckFrom(s *tapedeck.Session, id string, from int64, resumed bool) error {
	switch {
	case from > s.Head && resumed:
		return tapedeck.Errorf(tapedeck.Invalid, "session %s has no event %d yet: it is at offset %d", id, from-1, s.Head).
			WithHint("it may have been deleted and recreated; read it from offset 0")
	case from > s.Head:
		return tapedeck.Errorf(tapedeck.Invalid, "session %s is at offset %d, you asked for events from %d", id, s.Head, from).
			WithHint("read from %d or before", s.Head)
	}
	return nil
}

// WantsStream reports whether a request asks for Server-Sent Events.
func WantsStream(r *http.Request) bool {
	return strings.Contains(strings.Join(r.Header.Values("Accept"), ","), "text/event-stream")
}
